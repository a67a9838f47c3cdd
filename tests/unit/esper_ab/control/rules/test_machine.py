"""The experiment as a machine, through worlds of faults: no socket, no process, no file, no clock."""

import sys
from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.outcomes.drawn_decisions import Choices
from support.plans import fake_plans
from support.worlds.machine_world import World, limits_of

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import Interrupted, WorkerFailed, WorkerHung
from esper_ab.contracts.messages import Failed, Release
from esper_ab.control.rules import commands
from esper_ab.control.rules.deaths import any_complete, nothing_left
from esper_ab.control.rules.machine import CTRL_C
from esper_ab.journal.events import EpisodeRecorded, Incident, MilestoneReleased, RunEvaluated, RunReady, RunStarted
from esper_ab.journal.fold import fold

PLANS = {
    "lockstep": fake_plans.plan(seeds=3, groups=("a", "b", "c"), cores=3),
    "two blocks at once": fake_plans.plan(seeds=3, cores=4),
    "independent": fake_plans.plan(seeds=3, sync="independent"),
    "alternate": fake_plans.plan(seeds=2, cores=1, placement="alternate"),
    "sequence": fake_plans.plan(seeds=2, cores=1, placement="sequence"),
    "early stop": fake_plans.plan(seeds=9, groups=("a1", "a2", "b"), cores=6, episodes=1, unpaired=True, margin=0.001),
    "trainer": fake_plans.with_trainer_runs(fake_plans.plan(seeds=3, groups=("a", "b", "c"), cores=6)),
    "open-ended": fake_plans.plan(seeds=2, episodes=1, unpaired=True, margin=0.001, open_ended=True),
}
EVERY_PLAN = pytest.mark.parametrize("name", PLANS)
PHASES = [phase for phase in (Phase.reuse, Phase.generate, Phase.shrink) if phase in settings.default.phases]
EXAMPLES = {"early stop": 15}  # its looks are statistics
WORLDS = st.binary(min_size=600, max_size=600).map(Choices)


def records(events):
    """Every record, by run and milestone; AssertionError for one that was recorded twice or out of order."""
    found = {}
    for event in events:
        if isinstance(event, EpisodeRecorded | RunEvaluated):
            ref = event.record.run
            history = len(found.setdefault(event.record.run.name, []))
            if isinstance(event, EpisodeRecorded):
                assert event.record.episode == history, f"{ref.name}: {event.record.episode} after {history - 1}"
            found[ref.name].append(event)
    return found


def check_blocks(history):
    """A given-up replicate takes its block with it: no run of it is still to come, and one is to blame."""
    for block in history.blocks:
        there = [run for spec in block.runs if not (run := history.runs[spec.ref.name]).left_out]
        if any(run.lost for run in there):
            assert not any(run.expected for run in there)
            assert not any(run.lost and run.evaluation is not None for run in there)


def check_end(world):
    history = world.recorded
    assert history == fold(world.journal)
    found = records(world.journal)
    check_blocks(history)
    for name, run in history.runs.items():
        if run.evaluation is not None:
            assert len(found[name]) == run.spec.episodes + 1
            given_up = any(history.runs[spec.ref.name].lost for spec in history.blocks[run.ref.replicate].runs)
            assert given_up or world.error or run.released == run.spec.episodes + 1
    if world.error is None:
        assert not any(run.expected for run in history.runs.values())
        assert not nothing_left(history)
    else:
        assert isinstance(world.error, WorkerFailed | WorkerHung)
    return found


@cache
def in_peace(name):
    """What the experiment comes to without faults."""
    world = World(PLANS[name]).to_the_end()
    assert world.error is None
    return world


def entered(world):
    return [event for event in world.journal if isinstance(event, Incident)]


@EVERY_PLAN
def test_an_experiment_without_faults_comes_to_its_end(name):
    world = in_peace(name)
    found = check_end(world)
    assert found
    assert {event.category for event in entered(world)} <= {"interrupted"}
    assert len([event for event in world.journal if isinstance(event, RunReady)]) == len(found)


@EVERY_PLAN
def test_whatever_happens_every_record_is_there_once_and_the_experiment_ends(name):
    """Also where other coordinators take over, from anywhere in the journal."""

    @settings(max_examples=EXAMPLES.get(name, 75), phases=PHASES)
    @given(choices=WORLDS)
    def in_every_world(choices):
        lives = choices.number(3)
        world = World(PLANS[name], limits=limits_of(1 + choices.number(3)), at_once=1 + choices.number(4))
        world.some_faults(choices)
        for _ in range(lives):
            world = world.resumed(1 + choices.number(len(world.journal)))
            world.some_faults(choices)
        world.to_the_end()
        found = check_end(world)
        if world.error is None and not any(run.lost for run in world.recorded.runs.values()):
            assert found == records(in_peace(name).journal), "a fault has changed what is computed"
            assert result_hash(world.recorded) == result_hash(in_peace(name).recorded)

    in_every_world()


@EVERY_PLAN
def test_a_stop_ends_after_the_barrier_in_progress_and_is_resumed_to_the_same_records(name):
    @settings(max_examples=EXAMPLES.get(name, 30), phases=PHASES)
    @given(choices=WORLDS)
    def in_every_world(choices):
        world = World(PLANS[name])
        world.some_faults(choices)
        if world.is_over:
            return
        world.perform(world.machine.stop_requested("SIGTERM", world.now))
        reached = {name: max(run.recorded, run.released) for name, run in world.recorded.runs.items()}
        world.to_the_end()
        assert not isinstance(world.error, Interrupted) or world.error.in_order
        assert all(run.recorded <= reached.get(name, -1) + 1 for name, run in world.recorded.runs.items())
        again = world.resumed(len(world.journal)).to_the_end()
        found = check_end(again)
        if not any(run.lost for run in again.recorded.runs.values()):
            assert found == records(in_peace(name).journal)

    in_every_world()


def test_what_a_block_costs_does_not_depend_on_how_many_there_are():
    calls = {}
    for replicates in (12, 48):
        world = World(fake_plans.plan(seeds=replicates, episodes=1, cores=6, groups=("a", "b", "c")))
        calls[replicates] = 0

        def count(frame, event, arg, replicates=replicates):
            calls[replicates] += event == "call"

        while sum(run.evaluation is not None for run in world.recorded.runs.values()) < 2 * replicates - 4:
            sys.setprofile(count)
            try:
                world.in_peace()
            finally:
                sys.setprofile(None)
    assert calls[48] < 6 * calls[12]  # 4.7 for a sum over blocks, 12 and more for one over all of them in each


def in_the_midst(rounds, plan=PLANS["lockstep"], **how):
    """A world after some rounds in peace, and its first worker."""
    world = World(plan, **how)
    for _ in range(rounds):
        world.in_peace()
    return world, next(iter(world.workers.values()))


def test_a_second_ctrl_c_stops_at_once_and_a_second_sigterm_does_not():
    world, _ = in_the_midst(4)
    for by in ("SIGTERM", "SIGTERM"):
        world.perform(world.machine.stop_requested(by, world.now))
    assert world.error is None
    world.perform(world.machine.stop_requested(CTRL_C, world.now))
    assert isinstance(world.error, Interrupted)
    assert not world.error.in_order
    assert [event.category for event in entered(world)] == ["interrupted"]


@pytest.mark.parametrize("name", ["lockstep", "alternate", "early stop"])
def test_a_stop_in_the_last_barrier_of_all_ends_a_finished_experiment_with_its_look(name):
    """Nothing is left that a resumed experiment could do."""
    world = World(PLANS[name])
    last = len(in_peace(name).journal)
    while any(run.expected and run.released < run.spec.episodes for run in world.recorded.runs.values()):
        world.in_peace()
    assert len(world.journal) < last
    world.perform(world.machine.stop_requested(CTRL_C, world.now))
    world.to_the_end()
    assert world.error is None
    assert records(world.journal) == records(in_peace(name).journal)
    assert world.recorded.looks == in_peace(name).recorded.looks


def test_nothing_counts_that_a_worker_says_after_it_has_failed():
    world, worker = in_the_midst(3)
    world.hear(worker, worker.failed())
    kept = len(world.journal)
    world.go_on(worker, Choices(b""))
    assert worker.reports
    assert len(world.journal) == kept


def ended_by(complete, summary, traceback="", **more):
    """A world at its end, one of whose workers has failed so: in the first seed, or after one that is complete."""
    world = World(PLANS["lockstep"])
    while any_complete(world.recorded) != complete or not all(worker.working for worker in world.workers.values()):
        world.in_peace()
    failed = Failed(summary=summary, traceback=traceback, again=False, **more)
    world.hear(next(iter(world.workers.values())), failed)
    return world.to_the_end()


@pytest.mark.parametrize("complete", [False, True], ids=["the first seed", "a later one"])
def test_what_has_to_fail_again_is_not_started_again(complete):
    """Before anything is complete nothing is given up, so that whoever mends it can resume; later one replicate is."""
    world = ended_by(complete, "OutOfMemory: 15.1 GiB of 16", "…")
    assert {run.ref.replicate for run in world.recorded.runs.values() if run.lost} == ({1} if complete else set())
    assert [event.category for event in entered(world)].count("worker_death") == 1
    blamed = [event.detail for event in entered(world) if event.category == "dropped_pair"]
    assert [" died once " in detail for detail in blamed] == [True] * complete
    assert (world.error is None) == complete
    assert complete or "OutOfMemory: 15.1 GiB of 16" in str(world.error)


def test_code_that_changed_stops_the_experiment_and_costs_no_seed():
    world = ended_by(True, "train.py changed; put it back", stops=True)
    assert not [run for run in world.recorded.runs.values() if run.lost]
    assert str(world.error).count("train.py changed; put it back") == 1


def test_a_copy_of_a_users_code_that_fails_leaves_nothing_to_resume_and_is_told_once():
    world = ended_by(False, "reward mode 'mine.py:r' failed")
    assert nothing_left(world.recorded)
    told = [event.detail for event in entered(world) if "'mine.py:r'" in event.detail]
    assert (len(told), str(world.error).count("'mine.py:r'")) == (1, 1)


def test_a_run_that_is_complete_when_its_seed_is_given_up_gets_no_release_and_its_lane_goes_on():
    """The worker of b/0 dies and takes the replicate with it; that of a/0 repeats its last report."""
    world = World(fake_plans.plan(seeds=2), limits=limits_of(deaths=1))
    one, other = world.workers.values()
    while world.recorded.runs["a/0"].evaluation is None:
        for worker in (one, other) if world.recorded.runs["b/0"].recorded < 2 else (one,):
            world.go_on(worker, Choices(b""))
        world.finish_round()
    last = one.reports[-1]
    world.act("die", other, Choices(b""))
    world.finish_round()
    answers = sent(world.machine.heard(one.identity, last, world.now))
    assert not [message for message in answers if isinstance(message, Release)]
    world.to_the_end()
    assert states(world) == {"a/0": "finished", "b/0": "lost", "a/1": "finished", "b/1": "finished"}


def sent(wanted):
    return [command.message for command in wanted if isinstance(command, commands.Send)]


def states(world):
    return {name: run.state for name, run in world.recorded.runs.items()}


@pytest.mark.parametrize("blameless", [True, False])
def test_a_death_that_no_run_is_to_blame_for_costs_none_and_three_in_a_row_end_the_experiment(blameless):
    world, worker = in_the_midst(3, PLANS["two blocks at once"], limits=limits_of(deaths=1))

    def end():
        world.perform(world.machine.lost(worker.order.lane.name, "was lost", "", hung=False, blameless=blameless))

    end()
    assert any(run.lost for run in world.recorded.runs.values()) != blameless
    if blameless:
        end()
        assert world.error is None
        end()
        assert isinstance(world.error, WorkerFailed)
        assert "third time in a row" in str(world.error)
        assert not any(run.lost for run in world.recorded.runs.values())


def test_an_experiment_whose_every_seed_was_given_up_has_nothing_to_compare():
    world = in_peace("lockstep")
    assert world.machine.error_at_end() is None
    lost = [Incident(category="dropped_pair", run_name=name, detail="") for name in world.recorded.runs]
    given_up = World(PLANS["lockstep"], [world.journal[0], *lost])
    assert not given_up.machine.in_progress
    assert isinstance(given_up.machine.error_at_end(), WorkerFailed)
    assert "every seed was given up" in str(given_up.machine.error_at_end())


def test_a_seed_that_was_half_given_up_is_given_up_by_the_next_coordinator():
    world, _ = in_the_midst(4)
    lost = Incident(category="dropped_pair", run_name="a/0", detail="")
    again = World(PLANS["lockstep"], [*world.journal, lost])
    assert [event.run_name for event in entered(again) if event.category == "cancelled"] == ["b/0", "c/0"]
    again.to_the_end()
    assert states(again) == {name: "lost" if name.endswith("/0") else "finished" for name in again.recorded.runs}


def test_a_result_that_is_reported_twice_is_an_entry_only_where_it_differs():
    world, worker = in_the_midst(0)
    while worker.milestone != 1:
        world.in_peace()
    kept = len(world.journal)
    (ready, episode) = worker.reports
    for said in (ready, episode):
        world.hear(worker, said)
    assert len(world.journal) == kept
    world.hear(worker, replace(episode, record=replace(episode.record, digest="another")))
    (entry,) = world.journal[kept:]
    assert (entry.category, entry.run_name, entry.episode) == ("inexact_resume", worker.run, 0)


# When deaths give a seed up, and with it its block; when they end the experiment; what goes on side by side.


def dying(runs, plan):
    """A world at its end, while each worker of these runs fails after its first episode."""
    world = World(plan)
    while not world.is_over:
        world.in_peace()
        for worker in world.workers.values():
            if worker.run in runs and worker.milestone == 1 and worker.working and not world.is_over:
                world.hear(worker, worker.failed())
    world.error = world.error or world.machine.error_at_end()
    return world


def test_three_deaths_at_one_point_give_the_seed_up_in_every_group_and_no_other():
    world = dying({"b/1"}, PLANS["lockstep"])
    assert states(world) == {name: "lost" if name.endswith("/1") else "finished" for name in world.recorded.runs}
    first, *others = [event for event in entered(world) if event.category in ("dropped_pair", "cancelled")]
    assert (first.category, first.run_name) == ("dropped_pair", "b/1")
    assert {entry.category for entry in others} == {"cancelled"}
    why = "seed 1 was given up: b/1 died 3 times after episode 0: reported an error: RuntimeError: the planted error"
    assert {entry.detail for entry in (first, *others)} == {why}
    assert [event.category for event in entered(world)].count("worker_death") == 3
    assert world.error is None


def test_one_fault_in_every_seed_ends_the_experiment_and_what_is_left_can_be_resumed():
    world = dying({f"b/{seed}" for seed in range(6)}, fake_plans.plan(seeds=6))
    assert isinstance(world.error, WorkerFailed)
    assert "the planted error" in str(world.error)
    assert "several seeds were given up for the same reason and none was completed" in str(world.error)
    assert [states(world)[f"a/{seed}"] for seed in range(6)] == ["lost"] * 3 + ["planned"] * 3
    mended = world.resumed(len(world.journal)).to_the_end()
    assert [states(mended)[f"a/{seed}"] for seed in range(6)] == ["lost"] * 3 + ["finished"] * 3


def test_a_fault_that_comes_after_a_complete_seed_ends_nothing():
    world = dying({f"b/{seed}" for seed in range(1, 5)}, fake_plans.plan(seeds=6))
    assert world.error is None
    assert [states(world)[f"b/{seed}"] for seed in range(6)] == ["finished", *["lost"] * 4, "finished"]


@pytest.mark.parametrize(("cores", "at_once"), [(2, {0}), (4, {0, 1})])
def test_as_many_blocks_are_begun_at_once_as_lanes_allow(cores, at_once):
    world = World(fake_plans.plan(seeds=4, cores=cores))
    while not any_complete(world.recorded):
        world.in_peace()
    journal = world.journal
    first_done = next(n for n, one in enumerate(journal) if isinstance(one, MilestoneReleased) and one.milestone == 3)
    begun = {event.run.replicate for event in journal[:first_done] if isinstance(event, RunStarted)}
    assert begun == at_once


def test_independent_runs_do_not_wait_for_each_other():
    world = World(fake_plans.plan(seeds=1, sync="independent"))
    while len(ready := [worker for worker in world.workers.values() if worker.working and worker.milestone == 0]) < 2:
        world.in_peace()
    ahead, behind = ready
    run = world.recorded.runs[ahead.run]
    while run.evaluation is None:
        world.go_on(ahead, Choices(b""))
        world.finish_round()
    assert behind.milestone == 0
    assert all(len(event.runs) == 1 for event in world.journal if isinstance(event, MilestoneReleased))
