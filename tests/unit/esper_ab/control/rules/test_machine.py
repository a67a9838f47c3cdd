"""The experiment as a machine, through worlds of faults: no socket, no process, no file, no clock."""

import sys
from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support import fake_plans
from support.drawn import Choices
from support.machine_world import World, limits_of

from esper_ab.analysis.trained_by import result_hash
from esper_ab.contracts.errors import Interrupted, WorkerFailed, WorkerHung
from esper_ab.contracts.messages import Failed, Release
from esper_ab.control.rules import commands
from esper_ab.control.rules.machine import CTRL_C
from esper_ab.control.rules.runs import any_complete, nothing_left
from esper_ab.journal.events import (
    EpisodeRecorded,
    Incident,
    RunEvaluated,
    RunReady,
)
from esper_ab.journal.fold import fold

PLANS = {
    "lockstep": fake_plans.plan(seeds=3, groups=("a", "b", "c"), cores=3),
    "two blocks at once": fake_plans.plan(seeds=3, cores=4),
    "independent": fake_plans.plan(seeds=3, sync="independent"),
    "sequence": fake_plans.plan(seeds=2, cores=1, placement="sequence"),
    "early stop": fake_plans.plan(seeds=9, groups=("a1", "a2", "b"), cores=6, episodes=1, unpaired=True, margin=0.001),
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
            ref, history = event.record.run, len(found.setdefault(event.record.run.name, []))
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


@EVERY_PLAN
def test_an_experiment_without_faults_comes_to_its_end(name):
    world = in_peace(name)
    found = check_end(world)
    assert found
    categories = {event.category for event in world.journal if isinstance(event, Incident)}
    assert categories <= {"interrupted"}
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
        if world.over:
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


def test_a_second_ctrl_c_stops_at_once_and_a_second_sigterm_does_not():
    world = World(PLANS["lockstep"])
    for _ in range(4):
        world.in_peace()
    for by in ("SIGTERM", "SIGTERM"):
        world.perform(world.machine.stop_requested(by, world.now))
    assert world.error is None
    world.perform(world.machine.stop_requested(CTRL_C, world.now))
    assert isinstance(world.error, Interrupted)
    assert not world.error.in_order
    assert [event.category for event in world.journal if isinstance(event, Incident)] == ["interrupted"]


def test_nothing_counts_that_a_worker_says_after_it_has_failed():
    world = World(PLANS["lockstep"])
    for _ in range(3):
        world.in_peace()
    worker = next(iter(world.workers.values()))
    world.hear(worker, worker.failed())
    kept = len(world.journal)
    world.go_on(worker, Choices(b""))
    assert worker.said
    assert len(world.journal) == kept


@pytest.mark.parametrize("complete", [False, True], ids=["the first seed", "a later one"])
def test_what_has_to_fail_again_is_not_started_again(complete):
    """Before anything is complete nothing is given up, so that whoever mends it can resume; later one replicate is."""
    world = World(PLANS["lockstep"])
    while any_complete(world.recorded) != complete or not all(worker.working for worker in world.workers.values()):
        world.in_peace()
    worker = next(iter(world.workers.values()))
    world.hear(worker, Failed(summary="OutOfMemory: 15.1 GiB of 16", traceback="…", again=False))
    world.to_the_end()
    assert {run.ref.replicate for run in world.recorded.runs.values() if run.lost} == ({1} if complete else set())
    assert [event.category for event in world.journal if isinstance(event, Incident)].count("worker_death") == 1
    blamed = [event.detail for event in world.journal if getattr(event, "category", "") == "dropped_pair"]
    assert [" died once " in detail for detail in blamed] == [True] * complete
    assert (world.error is None) == complete
    assert complete or "OutOfMemory: 15.1 GiB of 16" in str(world.error)


def test_code_that_changed_stops_the_experiment_and_costs_no_seed():
    world = World(PLANS["lockstep"])
    while not any_complete(world.recorded) or not all(worker.working for worker in world.workers.values()):
        world.in_peace()
    worker = next(iter(world.workers.values()))
    world.hear(worker, Failed(summary="train.py changed; put it back", traceback="", again=False, stops=True))
    world.to_the_end()
    assert not [run for run in world.recorded.runs.values() if run.lost]
    assert str(world.error).count("train.py changed; put it back") == 1


def test_a_copy_of_a_users_code_that_fails_leaves_nothing_to_resume_and_is_told_once():
    world = World(PLANS["lockstep"])
    while not all(worker.working for worker in world.workers.values()):
        world.in_peace()
    worker = next(iter(world.workers.values()))
    world.hear(worker, Failed(summary="reward mode 'mine.py:r' failed", traceback="", again=False))
    world.to_the_end()
    assert nothing_left(world.recorded)
    told = [event.detail for event in world.journal if isinstance(event, Incident) and "'mine.py:r'" in event.detail]
    assert (len(told), str(world.error).count("'mine.py:r'")) == (1, 1)


def beside_a_complete_run():
    """A world whose run a/0 is complete, with its worker; that of b/0 dies and takes the replicate with it."""
    world = World(fake_plans.plan(seeds=2), limits=limits_of(deaths=1))
    one, other = world.workers.values()
    while world.recorded.runs["a/0"].evaluation is None:
        for worker in (one, other) if world.recorded.runs["b/0"].recorded < 2 else (one,):
            world.go_on(worker, Choices(b""))
        world.round()
    last = one.said[-1]
    world.act("die", other, Choices(b""))
    return world, one, last


def test_a_repeat_of_a_complete_run_whose_replicate_was_given_up_is_not_answered_by_a_release():
    world, one, last = beside_a_complete_run()
    world.round()
    answers = world.machine.heard(one.identity, last, world.now)
    sent = [command.message for command in answers if isinstance(command, commands.Send)]
    assert not [message for message in sent if isinstance(message, Release)]


def test_a_lane_is_free_again_whose_run_is_complete_when_its_replicate_is_given_up():
    world, *_ = beside_a_complete_run()
    world.to_the_end()
    states = {name: run.state for name, run in world.recorded.runs.items()}
    assert states == {"a/0": "finished", "b/0": "lost", "a/1": "finished", "b/1": "finished"}


@pytest.mark.parametrize("blameless", [True, False])
def test_a_death_that_no_run_is_to_blame_for_costs_none_and_three_in_a_row_end_the_experiment(blameless):
    world = World(PLANS["two blocks at once"], limits=limits_of(deaths=1))
    for _ in range(3):
        world.in_peace()
    lane = next(iter(world.workers))

    def end():
        world.perform(world.machine.lost(lane, "was lost", "", hung=False, blameless=blameless))

    end()
    assert any(run.lost for run in world.recorded.runs.values()) != blameless
    if blameless:
        end()
        assert world.error is None
        end()
        assert isinstance(world.error, WorkerFailed)
        assert "third time in a row" in str(world.error)
        assert not any(run.lost for run in world.recorded.runs.values())


def test_an_assignment_that_was_lost_is_sent_again_to_a_worker_that_says_hello_again():
    """As after a coordinator that stood still: a connection is gone with what was on its way."""
    world = World(PLANS["lockstep"])
    for worker in world.workers.values():
        world.hear(worker, worker.hello())
    world.round()
    worker = next(iter(world.workers.values()))

    def answers():
        said = world.machine.heard(worker.identity, worker.hello(), world.now)
        return [command.message for command in said if isinstance(command, commands.Send)]

    kept = len(world.journal)
    assert answers() == [worker.assign]
    world.hear(worker, worker.progress())
    assert answers() == []
    world.hear(worker, worker.ready(0))
    assert answers() == []
    assert len(world.journal) == kept + 1


def test_an_experiment_whose_every_seed_was_given_up_has_nothing_to_compare():
    world = in_peace("lockstep")
    assert world.machine.error_at_end() is None
    lost = [Incident(category="dropped_pair", run_name=name, detail="") for name in world.recorded.runs]
    given_up = World(PLANS["lockstep"], [world.journal[0], *lost])
    assert not given_up.machine.in_progress
    assert isinstance(given_up.machine.error_at_end(), WorkerFailed)
    assert "every seed was given up" in str(given_up.machine.error_at_end())


def test_a_seed_that_was_half_given_up_is_given_up_by_the_next_coordinator():
    world = World(PLANS["lockstep"])
    for _ in range(4):
        world.in_peace()
    lost = Incident(category="dropped_pair", run_name="a/0", detail="")
    again = World(PLANS["lockstep"], [*world.journal, lost])
    cancelled = [event.run_name for event in again.journal if getattr(event, "category", "") == "cancelled"]
    assert cancelled == ["b/0", "c/0"]
    again.to_the_end()
    states = {name: run.state for name, run in again.recorded.runs.items()}
    assert {name for name, state in states.items() if state == "lost"} == {"a/0", "b/0", "c/0"}
    assert {state for name, state in states.items() if not name.endswith("/0")} == {"finished"}


def test_a_result_that_is_reported_twice_is_an_entry_only_where_it_differs():
    world = World(PLANS["lockstep"])
    worker = next(iter(world.workers.values()))
    while worker.at != 1:
        world.in_peace()
    kept, (ready, episode) = len(world.journal), worker.said
    for said in (ready, episode):
        world.hear(worker, said)
    assert len(world.journal) == kept
    world.hear(worker, replace(episode, record=replace(episode.record, digest="another")))
    (entry,) = world.journal[kept:]
    assert (entry.category, entry.run_name, entry.episode) == ("inexact_resume", worker.run, 0)
