"""A failure of the user's program costs a seed or ends the experiment."""

import pytest
from support.outcomes.drawn_decisions import Choices
from support.plans import fake_plans
from support.plans.fake_plans import with_trainer_runs
from support.worlds.machine_world import World, limits_of

from esper_ab.journal.events import Incident


def states(world):
    return {name: run.state for name, run in world.recorded.runs.items()}


def world_with_failures(runs, plan, cause="ValueError: #", deaths=3):
    """Return the end of a world in which the program fails in each of these runs."""
    world = World(with_trainer_runs(plan), limits=limits_of(deaths))
    while not world.is_over:
        world.in_peace()
        for worker in world.workers.values():
            if worker.run in runs and worker.milestone == 0 and worker.working and not world.is_over:
                world.hear(worker, worker.failed(cause=cause))
    world.error = world.error or world.machine.error_at_end()
    return world


def deaths_of(world):
    incidents = [event for event in world.journal if isinstance(event, Incident)]
    return [event.run_name for event in incidents if event.category == "worker_death"]


@pytest.mark.parametrize(
    ("broken", "died"),
    [
        ("ab", ["a/0", "b/0"]),  # both runs of the first seed
        ("b", ["b/0", "b/0", "b/1"]),  # every run of one group: the first is tried again, then comes the next seed
    ],
)
def test_the_same_failure_in_two_runs_ends_the_experiment_without_losing_seeds(broken, died):
    world = world_with_failures({f"{group}/{seed}" for group in broken for seed in range(6)}, fake_plans.plan(seeds=6))
    assert deaths_of(world) == died
    assert not [name for name, run in world.recorded.runs.items() if run.lost]
    first, *_ = str(world.error).splitlines()
    assert first == (
        f"{died[0]} and {died[-1]} failed in the same way, so the experiment ends, with every seed kept: ValueError: #"
    )
    assert world.warnings == [f"{died[0]} failed and is tried again: ValueError: #"]
    mended = world.resumed(len(world.journal)).to_the_end()
    assert set(states(mended).values()) == {"finished"}


def test_a_failing_run_costs_its_seed_if_another_seed_is_complete():
    """The first seed is set aside until then."""
    world = world_with_failures({"b/0"}, fake_plans.plan(seeds=6))
    assert world.error is None
    assert {name for name, state in states(world).items() if state == "lost"} == {"a/0", "b/0"}
    assert deaths_of(world) == ["b/0", "b/0"]


def test_a_late_report_of_a_postponed_seed_is_ignored():
    world = World(with_trainer_runs(fake_plans.plan(seeds=6)))
    while not all(worker.working and worker.milestone == 0 for worker in world.workers.values()):
        world.in_peace()
    slow = next(worker for worker in world.workers.values() if worker.run == "a/0")
    failures = 0
    while slow.run:
        failing = next(worker for worker in world.workers.values() if worker.run == "b/0" or not worker.greeted)
        if failing.working and failing.milestone == 0:
            failures += 1
            world.hear(failing, failing.failed(cause="ValueError: #"))
        else:
            world.go_on(failing, Choices(b""))
        world.finish_round()
    assert failures == 2
    world.hear(slow, slow.reports[-1])
    assert world.recorded.runs["a/0"].recorded == 0
    assert world.to_the_end().error is None
    assert {name for name, state in states(world).items() if state == "lost"} == {"a/0", "b/0"}


def test_a_failure_in_the_only_seed_ends_the_experiment():
    world = world_with_failures({"b/0"}, fake_plans.plan(seeds=1))
    assert "every seed was given up, so there is nothing to compare" in str(world.error)


def test_failures_of_one_group_after_a_complete_seed_cost_only_the_failing_seeds():
    """The group's setting may be the cause; a failure in several groups has another cause and ends the experiment."""
    world = world_with_failures({f"b/{seed}" for seed in range(1, 5)}, fake_plans.plan(seeds=6))
    assert world.error is None
    assert [states(world)[f"b/{seed}"] for seed in range(6)] == ["finished", *["lost"] * 4, "finished"]
    world = world_with_failures({f"{group}/{seed}" for group in "ab" for seed in range(1, 5)}, fake_plans.plan(seeds=6))
    assert " and ".join(deaths_of(world)) + " failed in the same way" in str(world.error)
    assert "lost" not in states(world).values()


def test_failures_for_different_reasons_are_retried():
    world = World(with_trainer_runs(fake_plans.plan(seeds=1)))
    while not all(worker.working and worker.milestone == 0 for worker in world.workers.values()):
        world.in_peace()
    for worker, cause in zip(list(world.workers.values()), ("KeyError: #", "ValueError: #"), strict=True):
        world.hear(worker, worker.failed(cause=cause))
    world.finish_round()
    assert world.to_the_end().error is None
