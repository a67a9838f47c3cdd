"""The experiment as a state machine in worlds of faults, without sockets, processes, files or clocks."""

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
    """Return the records of each run; AssertionError if one was recorded twice or out of order."""
    by_run = {}
    for event in events:
        if isinstance(event, EpisodeRecorded | RunEvaluated):
            ref = event.record.run
            history = len(by_run.setdefault(event.record.run.name, []))
            if isinstance(event, EpisodeRecorded):
                assert event.record.episode == history, f"{ref.name}: {event.record.episode} after {history - 1}"
            by_run[ref.name].append(event)
    return by_run


def check_blocks(history):
    """Check that a lost replicate has no expected and no evaluated lost run."""
    for block in history.blocks:
        runs = [run for spec in block.runs if not (run := history.runs[spec.ref.name]).left_out]
        if any(run.lost for run in runs):
            assert not any(run.expected for run in runs)
            assert not any(run.lost and run.evaluation is not None for run in runs)


def check_end(world):
    history = world.recorded
    assert history == fold(world.journal)
    by_run = records(world.journal)
    check_blocks(history)
    for name, run in history.runs.items():
        if run.evaluation is not None:
            assert len(by_run[name]) == run.spec.episodes + 1
            given_up = any(history.runs[spec.ref.name].lost for spec in history.blocks[run.ref.replicate].runs)
            assert given_up or world.error or run.released == run.spec.episodes + 1
    if world.error is None:
        assert not any(run.expected for run in history.runs.values())
        assert not nothing_left(history)
    else:
        assert isinstance(world.error, WorkerFailed | WorkerHung)
    return by_run


@cache
def faultless_world(name):
    """Return the end of this experiment without faults."""
    world = World(PLANS[name]).to_the_end()
    assert world.error is None
    return world


def incidents_of(world):
    return [event for event in world.journal if isinstance(event, Incident)]


@EVERY_PLAN
def test_an_experiment_without_faults_finishes(name):
    world = faultless_world(name)
    by_run = check_end(world)
    assert by_run
    assert {event.category for event in incidents_of(world)} <= {"interrupted"}
    assert len([event for event in world.journal if isinstance(event, RunReady)]) == len(by_run)


@EVERY_PLAN
def test_every_record_is_written_once_despite_faults(name):
    """Other coordinators may take over at any line of the journal."""

    @settings(max_examples=EXAMPLES.get(name, 75), phases=PHASES)
    @given(choices=WORLDS)
    def in_every_world(choices):
        lives = choices.number(3)
        world = World(PLANS[name], limits=limits_of(1 + choices.number(3)), start_limit=1 + choices.number(4))
        world.some_faults(choices)
        for _ in range(lives):
            world = world.resumed(1 + choices.number(len(world.journal)))
            world.some_faults(choices)
        world.to_the_end()
        by_run = check_end(world)
        if world.error is None and not any(run.lost for run in world.recorded.runs.values()):
            assert by_run == records(faultless_world(name).journal), "a fault has changed a result"
            assert result_hash(world.recorded) == result_hash(faultless_world(name).recorded)

    in_every_world()


@EVERY_PLAN
def test_an_experiment_stopped_at_a_barrier_resumes_to_the_same_records(name):
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
        resumed_world = world.resumed(len(world.journal)).to_the_end()
        by_run = check_end(resumed_world)
        if not any(run.lost for run in resumed_world.recorded.runs.values()):
            assert by_run == records(faultless_world(name).journal)

    in_every_world()


def test_the_cost_per_block_does_not_grow_with_the_number_of_blocks():
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
    assert calls[48] < 6 * calls[12]  # 4.7 if linear in the number of blocks, 12 and more if quadratic


def world_after(rounds, plan=PLANS["lockstep"], **options):
    """Return a world after some rounds without faults, and its first worker."""
    world = World(plan, **options)
    for _ in range(rounds):
        world.in_peace()
    return world, next(iter(world.workers.values()))


def test_a_second_ctrl_c_stops_at_once():
    world, _ = world_after(4)
    for signal in ("SIGTERM", "SIGTERM"):
        world.perform(world.machine.stop_requested(signal, world.now))
    assert world.error is None
    world.perform(world.machine.stop_requested(CTRL_C, world.now))
    assert isinstance(world.error, Interrupted)
    assert not world.error.in_order
    assert [event.category for event in incidents_of(world)] == ["interrupted"]


@pytest.mark.parametrize("name", ["lockstep", "alternate", "early stop"])
def test_a_stop_at_the_last_barrier_finishes_the_experiment(name):
    """A resumed experiment would have nothing left to do."""
    world = World(PLANS[name])
    last_line = len(faultless_world(name).journal)
    while any(run.expected and run.released < run.spec.episodes for run in world.recorded.runs.values()):
        world.in_peace()
    assert len(world.journal) < last_line
    world.perform(world.machine.stop_requested(CTRL_C, world.now))
    world.to_the_end()
    assert world.error is None
    assert records(world.journal) == records(faultless_world(name).journal)
    assert world.recorded.looks == faultless_world(name).recorded.looks


def test_messages_of_a_failed_worker_are_ignored():
    world, worker = world_after(3)
    world.hear(worker, worker.failed())
    events_before = len(world.journal)
    world.go_on(worker, Choices(b""))
    assert worker.reports
    assert len(world.journal) == events_before


def world_ended_by(has_complete_seed, summary, traceback="", **failure_details):
    """Return the end of a world with this failure of a worker, in the first seed or after a complete one."""
    world = World(PLANS["lockstep"])
    while any_complete(world.recorded) != has_complete_seed or not all(
        worker.working for worker in world.workers.values()
    ):
        world.in_peace()
    failure = Failed(summary=summary, traceback=traceback, again=False, **failure_details)
    world.hear(next(iter(world.workers.values())), failure)
    return world.to_the_end()


@pytest.mark.parametrize("has_complete_seed", [False, True], ids=["the first seed", "a later one"])
def test_a_permanent_failure_is_not_retried(has_complete_seed):
    """Before a seed is complete none is given up, so that the user can fix the fault and resume; later one is."""
    world = world_ended_by(has_complete_seed, "OutOfMemory: 15.1 GiB of 16", "…")
    assert {run.ref.replicate for run in world.recorded.runs.values() if run.lost} == (
        {1} if has_complete_seed else set()
    )
    assert [event.category for event in incidents_of(world)].count("worker_death") == 1
    loss_details = [event.detail for event in incidents_of(world) if event.category == "dropped_pair"]
    assert [" died once " in detail for detail in loss_details] == [True] * has_complete_seed
    assert (world.error is None) == has_complete_seed
    assert has_complete_seed or "OutOfMemory: 15.1 GiB of 16" in str(world.error)


def test_changed_code_stops_the_experiment_without_losing_seeds():
    world = world_ended_by(True, "train.py changed; put it back", stops=True)
    assert not [run for run in world.recorded.runs.values() if run.lost]
    assert str(world.error).count("train.py changed; put it back") == 1
    assert str(world.error).splitlines()[0].endswith("reported an error: train.py changed; put it back")


def test_a_failing_copy_of_user_code_is_reported_once():
    world = world_ended_by(False, "reward mode 'mine.py:r' failed")
    assert nothing_left(world.recorded)
    details = [event.detail for event in incidents_of(world) if "'mine.py:r'" in event.detail]
    assert (len(details), str(world.error).count("'mine.py:r'")) == (1, 1)


def test_a_complete_run_of_a_lost_seed_gets_no_release():
    """The worker of b/0 dies, so the replicate is lost; the worker of a/0 repeats its last report."""
    world = World(fake_plans.plan(seeds=2), limits=limits_of(deaths=1))
    worker_a, worker_b = world.workers.values()
    while world.recorded.runs["a/0"].evaluation is None:
        for worker in (worker_a, worker_b) if world.recorded.runs["b/0"].recorded < 2 else (worker_a,):
            world.go_on(worker, Choices(b""))
        world.finish_round()
    last_report = worker_a.reports[-1]
    world.act("die", worker_b, Choices(b""))
    world.finish_round()
    answers = sent_messages(world.machine.heard(worker_a.identity, last_report, world.now))
    assert not [message for message in answers if isinstance(message, Release)]
    world.to_the_end()
    assert states(world) == {"a/0": "finished", "b/0": "lost", "a/1": "finished", "b/1": "finished"}


def sent_messages(issued_commands):
    return [command.message for command in issued_commands if isinstance(command, commands.Send)]


def states(world):
    return {name: run.state for name, run in world.recorded.runs.items()}


@pytest.mark.parametrize("is_blameless", [True, False])
def test_a_blameless_death_of_a_worker_costs_no_run(is_blameless):
    world, worker = world_after(3, PLANS["two blocks at once"], limits=limits_of(deaths=1))

    def lose_worker():
        world.perform(world.machine.lost(worker.order.lane.name, "was lost", "", hung=False, blameless=is_blameless))

    lose_worker()
    assert any(run.lost for run in world.recorded.runs.values()) != is_blameless
    if is_blameless:
        lose_worker()
        assert world.error is None
        lose_worker()
        assert isinstance(world.error, WorkerFailed)
        assert "third time in a row" in str(world.error)
        assert not any(run.lost for run in world.recorded.runs.values())


def test_an_experiment_without_remaining_seeds_fails():
    world = faultless_world("lockstep")
    assert world.machine.error_at_end() is None
    losses = [Incident(category="dropped_pair", run_name=name, detail="") for name in world.recorded.runs]
    lost_world = World(PLANS["lockstep"], [world.journal[0], *losses])
    assert not lost_world.machine.in_progress
    assert isinstance(lost_world.machine.error_at_end(), WorkerFailed)
    assert "every seed was given up" in str(lost_world.machine.error_at_end())


def test_the_next_coordinator_cancels_the_remaining_runs_of_a_lost_seed():
    world, _ = world_after(4)
    loss = Incident(category="dropped_pair", run_name="a/0", detail="")
    resumed_world = World(PLANS["lockstep"], [*world.journal, loss])
    assert [event.run_name for event in incidents_of(resumed_world) if event.category == "cancelled"] == ["b/0", "c/0"]
    resumed_world.to_the_end()
    assert states(resumed_world) == {
        name: "lost" if name.endswith("/0") else "finished" for name in resumed_world.recorded.runs
    }


def test_a_repeated_result_is_an_incident_only_if_it_differs():
    world, worker = world_after(0)
    while worker.milestone != 1:
        world.in_peace()
    events_before = len(world.journal)
    (ready_report, episode) = worker.reports
    for report in (ready_report, episode):
        world.hear(worker, report)
    assert len(world.journal) == events_before
    world.hear(worker, replace(episode, record=replace(episode.record, digest="another")))
    (entry,) = world.journal[events_before:]
    assert (entry.category, entry.run_name, entry.episode) == ("inexact_resume", worker.run, 0)


# Deaths that cost a seed and its block, deaths that end the experiment, and runs side by side.


def world_with_deaths(runs, plan):
    """Return the end of a world in which each worker of these runs fails after its first episode."""
    world = World(plan)
    while not world.is_over:
        world.in_peace()
        for worker in world.workers.values():
            if worker.run in runs and worker.milestone == 1 and worker.working and not world.is_over:
                world.hear(worker, worker.failed())
    world.error = world.error or world.machine.error_at_end()
    return world


def test_three_deaths_at_one_episode_cost_only_the_seed_concerned():
    world = world_with_deaths({"b/1"}, PLANS["lockstep"])
    assert states(world) == {name: "lost" if name.endswith("/1") else "finished" for name in world.recorded.runs}
    first_incident, *cancellations = [
        event for event in incidents_of(world) if event.category in ("dropped_pair", "cancelled")
    ]
    assert (first_incident.category, first_incident.run_name) == ("dropped_pair", "b/1")
    assert {entry.category for entry in cancellations} == {"cancelled"}
    reason = "seed 1 was given up: b/1 died 3 times after episode 0: reported an error: RuntimeError: the planted error"
    assert {entry.detail for entry in (first_incident, *cancellations)} == {reason}
    assert [event.category for event in incidents_of(world)].count("worker_death") == 3
    assert world.error is None


def test_the_same_fault_in_every_seed_ends_the_experiment():
    world = world_with_deaths({f"b/{seed}" for seed in range(6)}, fake_plans.plan(seeds=6))
    assert isinstance(world.error, WorkerFailed)
    assert "the planted error" in str(world.error)
    assert "several seeds were given up for the same reason and none was completed" in str(world.error)
    assert [states(world)[f"a/{seed}"] for seed in range(6)] == ["lost"] * 3 + ["planned"] * 3
    resumed_world = world.resumed(len(world.journal)).to_the_end()
    assert [states(resumed_world)[f"a/{seed}"] for seed in range(6)] == ["lost"] * 3 + ["finished"] * 3


def test_a_fault_after_a_complete_seed_does_not_end_the_experiment():
    world = world_with_deaths({f"b/{seed}" for seed in range(1, 5)}, fake_plans.plan(seeds=6))
    assert world.error is None
    assert [states(world)[f"b/{seed}"] for seed in range(6)] == ["finished", *["lost"] * 4, "finished"]


@pytest.mark.parametrize(("cores", "parallel_blocks"), [(2, {0}), (4, {0, 1})])
def test_the_number_of_concurrent_blocks_is_limited_by_lanes(cores, parallel_blocks):
    world = World(fake_plans.plan(seeds=4, cores=cores))
    while not any_complete(world.recorded):
        world.in_peace()
    journal = world.journal
    first_end = next(
        n for n, event in enumerate(journal) if isinstance(event, MilestoneReleased) and event.milestone == 3
    )
    started_blocks = {event.run.replicate for event in journal[:first_end] if isinstance(event, RunStarted)}
    assert started_blocks == parallel_blocks


def test_independent_runs_do_not_wait_for_each_other():
    world = World(fake_plans.plan(seeds=1, sync="independent"))
    while (
        len(ready_workers := [worker for worker in world.workers.values() if worker.working and worker.milestone == 0])
        < 2
    ):
        world.in_peace()
    first_worker, second_worker = ready_workers
    run = world.recorded.runs[first_worker.run]
    while run.evaluation is None:
        world.go_on(first_worker, Choices(b""))
        world.finish_round()
    assert second_worker.milestone == 0
    assert all(len(event.runs) == 1 for event in world.journal if isinstance(event, MilestoneReleased))
