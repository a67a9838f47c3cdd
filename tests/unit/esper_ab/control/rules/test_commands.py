"""Commands of the machine besides events: warnings, ends of workers, and syncs of the journal."""

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


def world_at_work():
    """Return a world whose two workers train towards the first milestone, and the workers."""
    world = World(PLAN)
    while not all(worker.working and worker.milestone == 0 for worker in world.workers.values()):
        world.in_peace()
    return world, *world.workers.values()


def texts_of_warnings(issued_commands):
    return [command.text for command in issued_commands if isinstance(command, commands.Warn)]


def lanes_of_ended_workers(issued_commands):
    return [command.lane for command in issued_commands if isinstance(command, commands.EndWorker)]


def test_during_a_slow_stop_the_working_workers_are_named_every_minute():
    world, waits, working_worker = world_at_work()
    world.go_on(waits, NONE)
    world.perform(world.machine.stop_requested("SIGTERM", world.now))
    warnings = {
        elapsed_s: texts_of_warnings(world.machine.end_round(world.now + elapsed_s))
        for elapsed_s in (9.0, 10.0, 69.0, 70.0)
    }
    assert (warnings[9.0], warnings[69.0]) == ([], [])
    for elapsed_s in (10.0, 70.0):
        (text,) = warnings[elapsed_s]
        assert (
            f"stopping; waiting for worker {working_worker.identity} on {working_worker.order.lane.name}, in episode 0 "
            "of run" in text
        )


def test_a_worker_with_an_invalid_report_is_ended_with_the_reason():
    world, worker, other_worker = world_at_work()
    world.hear(worker, report_of(other_worker.assign.spec, 1))
    (end,) = [command for command in world.machine.check_ended(world.now) if isinstance(command, commands.EndWorker)]
    assert (end.lane, end.hung) == (worker.order.lane.name, False)
    assert end.reason == f"reports about {other_worker.run}, which it was not assigned"


def test_the_last_messages_of_an_ended_worker_are_awaited_for_half_a_second():
    world, worker, _ = world_at_work()
    world.machine.exited(worker.order.lane.name, world.now)
    ended_lanes = [
        lanes_of_ended_workers(world.machine.check_ended(world.now + elapsed_s)) for elapsed_s in (0.25, 0.5)
    ]
    assert ended_lanes == [[], [worker.order.lane.name]]


def test_every_restart_of_a_worker_is_an_incident():
    world, worker, _ = world_at_work()
    for restarts in range(1, 3):
        world.perform(world.machine.lost(worker.order.lane.name, "was lost", "", hung=False, blameless=True))
        world.start_due()
        entries = [event for event in world.journal if isinstance(event, Incident) and event.category == "restart"]
        assert [entry.run_name for entry in entries] == [worker.run] * restarts


def test_outdated_progress_is_no_sign_of_life():
    world, worker, other_worker = world_at_work()

    def commands_after(progress):
        return list(world.machine.heard(worker.identity, progress, world.now))

    assert commands_after(other_worker.progress()) == []
    assert commands_after(worker.progress()) == [commands.Show(worker.progress())]
    outdated_progress = worker.progress()
    world.go_on(worker, NONE)
    assert commands_after(outdated_progress) == []  # it came after the report of what it was doing


def test_a_worker_at_the_barrier_is_never_late():
    world, waits, working_worker = world_at_work()
    world.go_on(waits, NONE)
    for _ in range(60):
        world.now += 5.0
        world.hear(working_worker, working_worker.progress())
        assert lanes_of_ended_workers(world.machine.check_silent(world.now)) == []
    for _ in range(60):
        world.now += 5.0
        if late_lanes := lanes_of_ended_workers(world.machine.check_silent(world.now)):
            break
    assert late_lanes == [working_worker.order.lane.name]


@pytest.mark.parametrize(("traceback", "quotes_log"), [("", False), ("Traceback: planted", True)])
def test_the_warning_about_a_death_quotes_the_log_if_there_is_a_traceback(traceback, quotes_log):
    world, worker, _ = world_at_work()
    world.hear(worker, Failed(summary="it does not fit", traceback=traceback))
    (text,) = texts_of_warnings(world.machine.lost(worker.order.lane.name, "was ended", "the log", hung=False))
    assert ("\nthe log" in text) == quotes_log
    assert text.startswith(f"worker {worker.identity} on {worker.order.lane.name} was ended, in episode 0 of run ")


def unsynced_events(issued_commands):
    """Return the appended events that no later command syncs."""
    kinds = [type(command) for command in issued_commands]
    last_sync = max((n for n, kind in enumerate(kinds) if kind is commands.Sync), default=-1)
    return [command.event for command in issued_commands[last_sync + 1 :] if isinstance(command, commands.Append)]


@pytest.mark.parametrize("traceback", ["", "Traceback: planted"])
def test_the_loss_of_a_seed_is_synced_to_the_disk_at_once(traceback):
    """Without a traceback the user's own code failed, and every seed is given up."""
    world = World(PLAN, limits=limits_of(deaths=1))
    world.in_peace()
    world.in_peace()
    worker = next(iter(world.workers.values()))
    world.hear(worker, Failed(summary="planted", traceback=traceback, again=traceback != ""))
    issued_commands = world.machine.lost(worker.order.lane.name, "was ended", "", hung=False)
    assert unsynced_events(issued_commands) == []
    world.perform(issued_commands)
    lost_seeds = {run.ref.replicate for run in world.recorded.runs.values() if run.lost}
    assert lost_seeds == ({0} if traceback else {0, 1})


def test_a_look_is_synced_to_the_disk_at_once():
    journal = World(PLAN).to_the_end().journal
    first_look = next(n for n, event in enumerate(journal) if isinstance(event, LookTaken))
    machine = ExperimentMachine(fold(journal[:first_look]), limits_of(), 0.0)
    issued_commands = machine.take_over()
    assert commands.Append(journal[first_look]) in issued_commands
    assert unsynced_events(issued_commands) == []


# Messages that were lost with a connection are sent again.


def sent_messages(issued_commands):
    return [command.message for command in issued_commands if isinstance(command, commands.Send)]


def test_a_lost_assignment_is_resent_after_another_hello():
    """A coordinator that stood still for a while loses the connection and the messages on it."""
    world = World(PLAN)
    for worker in world.workers.values():
        world.hear(worker, worker.hello())
    world.finish_round()
    worker = next(iter(world.workers.values()))

    def answers():
        return sent_messages(world.machine.heard(worker.identity, worker.hello(), world.now))

    events_before = len(world.journal)
    assert answers() == [worker.assign]
    world.hear(worker, worker.progress())
    assert answers() == []
    world.hear(worker, worker.ready(0))
    assert answers() == []
    assert len(world.journal) == events_before + 1


def test_a_lost_release_is_resent_after_a_repeated_report():
    world = World(PLAN)
    for worker in world.workers.values():
        world.hear(worker, worker.hello())
    world.finish_round()
    for worker in world.workers.values():
        world.hear(worker, worker.ready(0))
    worker = next(iter(world.workers.values()))

    def answers():
        return sent_messages(world.machine.heard(worker.identity, worker.reports[0], world.now))

    assert answers() == []  # it has not been released yet
    world.finish_round()
    assert answers() == [Release(run_name=worker.run, milestone=0)]
