"""What the machine commands besides events: warnings, workers that are ended, and the disk before it goes on."""

import pytest
from support.outcomes.drawn_decisions import Choices
from support.plans import fake_plans
from support.workers.fake_worker import report_of
from support.worlds.machine_world import World, limits_of

from esper_ab.contracts.messages import Failed, Release
from esper_ab.control.rules import commands
from esper_ab.control.rules.machine import ExperimentMachine
from esper_ab.journal.events import Incident, LookTaken
from esper_ab.journal.fold import fold

PLAN = fake_plans.plan(seeds=2)
NONE = Choices(b"")


def at_work():
    """A world whose two workers train towards the first milestone."""
    world = World(PLAN)
    while not all(worker.working and worker.milestone == 0 for worker in world.workers.values()):
        world.in_peace()
    return world, *world.workers.values()


def warned(wanted):
    return [command.text for command in wanted if isinstance(command, commands.Warn)]


def ended(wanted):
    return [command.lane for command in wanted if isinstance(command, commands.EndWorker)]


def test_a_stop_that_takes_longer_names_the_workers_at_work_and_again_every_minute():
    world, waits, works = at_work()
    world.go_on(waits, NONE)
    world.perform(world.machine.stop_requested("SIGTERM", world.now))
    told = {after: warned(world.machine.end_round(world.now + after)) for after in (9.0, 10.0, 69.0, 70.0)}
    assert (told[9.0], told[69.0]) == ([], [])
    for after in (10.0, 70.0):
        (text,) = told[after]
        assert f"stopping; waiting for worker {works.identity} on {works.order.lane.name}, in episode 0 of run" in text


def test_a_worker_that_reports_what_cannot_be_right_is_ended_with_the_reason():
    world, one, other = at_work()
    world.hear(one, report_of(other.assign.spec, 1))
    (end,) = [wanted for wanted in world.machine.check_ended(world.now) if isinstance(wanted, commands.EndWorker)]
    assert (end.lane, end.hung) == (one.order.lane.name, False)
    assert end.reason == f"reports about {other.run}, which it was not assigned"


def test_a_worker_that_has_ended_has_half_a_second_for_its_last_words():
    world, worker, _ = at_work()
    world.machine.exited(worker.order.lane.name, world.now)
    told = [ended(world.machine.check_ended(world.now + after)) for after in (0.25, 0.5)]
    assert told == [[], [worker.order.lane.name]]


def test_every_start_of_a_worker_but_the_first_is_an_entry():
    world, worker, _ = at_work()
    for restarts in range(1, 3):
        world.perform(world.machine.lost(worker.order.lane.name, "was lost", "", hung=False, blameless=True))
        world.start_due()
        entries = [event for event in world.journal if isinstance(event, Incident) and event.category == "restart"]
        assert [entry.run_name for entry in entries] == [worker.run] * restarts


def test_what_a_worker_says_of_a_run_that_is_not_its_own_or_is_not_at_work_is_no_sign_of_life():
    world, one, other = at_work()

    def wanted(progress):
        return list(world.machine.heard(one.identity, progress, world.now))

    assert wanted(other.progress()) == []
    assert wanted(one.progress()) == [commands.Show(one.progress())]
    late = one.progress()
    world.go_on(one, NONE)
    assert wanted(late) == []  # it came after the report of what it was doing


def test_a_worker_that_waits_at_the_barrier_is_not_late_however_long_the_other_takes():
    world, waits, works = at_work()
    world.go_on(waits, NONE)
    for _ in range(60):
        world.now += 5.0
        world.hear(works, works.progress())
        assert ended(world.machine.check_silent(world.now)) == []
    for _ in range(60):
        world.now += 5.0
        if late := ended(world.machine.check_silent(world.now)):
            break
    assert late == [works.order.lane.name]


@pytest.mark.parametrize(("traceback", "shown"), [("", False), ("Traceback: planted", True)])
def test_a_death_is_told_with_the_end_of_the_log_unless_its_reason_is_all_there_is_to_say(traceback, shown):
    world, worker, _ = at_work()
    world.hear(worker, Failed(summary="it does not fit", traceback=traceback))
    (text,) = warned(world.machine.lost(worker.order.lane.name, "was ended", "the log", hung=False))
    assert ("\nthe log" in text) == shown
    assert text.startswith(f"worker {worker.identity} on {worker.order.lane.name} was ended, in episode 0 of run ")


def unsynced(wanted):
    """Events that are not yet on the disk after the commands."""
    kinds = [type(command) for command in wanted]
    synced = max((n for n, kind in enumerate(kinds) if kind is commands.Sync), default=-1)
    return [command.event for command in wanted[synced + 1 :] if isinstance(command, commands.Append)]


@pytest.mark.parametrize("traceback", ["", "Traceback: planted"])
def test_a_seed_that_is_given_up_is_on_the_disk_before_anything_follows_from_it(traceback):
    """Without a traceback it is a user's own code that failed, and every seed is given up."""
    world = World(PLAN, limits=limits_of(deaths=1))
    world.in_peace()
    world.in_peace()
    worker = next(iter(world.workers.values()))
    world.hear(worker, Failed(summary="planted", traceback=traceback, again=traceback != ""))
    wanted = world.machine.lost(worker.order.lane.name, "was ended", "", hung=False)
    assert unsynced(wanted) == []
    world.perform(wanted)
    given_up = {run.ref.replicate for run in world.recorded.runs.values() if run.lost}
    assert given_up == ({0} if traceback else {0, 1})


def test_a_look_is_on_the_disk_before_anything_follows_from_it():
    journal = World(PLAN).to_the_end().journal
    first = next(n for n, event in enumerate(journal) if isinstance(event, LookTaken))
    machine = ExperimentMachine(fold(journal[:first]), limits_of(), 0.0)
    wanted = machine.take_over()
    assert commands.Append(journal[first]) in wanted
    assert unsynced(wanted) == []


# What was on its way when a connection was lost is sent again.


def sent(wanted):
    return [command.message for command in wanted if isinstance(command, commands.Send)]


def test_an_assignment_that_was_lost_is_sent_again_to_a_worker_that_says_hello_again():
    """As after a coordinator that stood still: a connection is gone with what was on its way."""
    world = World(PLAN)
    for worker in world.workers.values():
        world.hear(worker, worker.hello())
    world.finish_round()
    worker = next(iter(world.workers.values()))

    def answers():
        return sent(world.machine.heard(worker.identity, worker.hello(), world.now))

    kept = len(world.journal)
    assert answers() == [worker.assign]
    world.hear(worker, worker.progress())
    assert answers() == []
    world.hear(worker, worker.ready(0))
    assert answers() == []
    assert len(world.journal) == kept + 1


def test_a_release_that_was_lost_is_sent_again_to_a_worker_that_repeats_its_report():
    world = World(PLAN)
    for worker in world.workers.values():
        world.hear(worker, worker.hello())
    world.finish_round()
    for worker in world.workers.values():
        world.hear(worker, worker.ready(0))
    worker = next(iter(world.workers.values()))

    def answers():
        return sent(world.machine.heard(worker.identity, worker.reports[0], world.now))

    assert answers() == []  # it has not been released yet
    world.finish_round()
    assert answers() == [Release(run_name=worker.run, milestone=0)]
