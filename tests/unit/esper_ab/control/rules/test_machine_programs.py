"""A failure of the user's program costs a seed or ends the experiment."""

import pytest
from support.outcomes.drawn_decisions import Choices
from support.plans import fake_plans
from support.plans.fake_plans import with_trainer_runs
from support.worlds.machine_world import World, limits_of

from esper_ab.contracts.failure_cause import cause_of_text
from esper_ab.journal.events import Incident

WORDS = "ValueError: 3 features"
FEATURES = cause_of_text(WORDS)


def states(world):
    return {name: run.state for name, run in world.recorded.runs.items()}


def world_with_failures(runs, plan, words=WORDS, deaths=3):
    """Return the end of a world in which the program fails in each of these runs, with these `words`.

    In `words`, {run} stands for the run's name.
    """
    world = World(with_trainer_runs(plan), limits=limits_of(deaths))
    while not world.is_over:
        world.in_peace()
        for worker in world.workers.values():
            if worker.run in runs and worker.milestone == 0 and worker.working and not world.is_over:
                world.hear(worker, worker.failed(cause=cause_of_text(words.format(run=worker.run))))
    world.error = world.error or world.machine.error_at_end()
    return world


def deaths_of(world):
    incidents = [event for event in world.journal if isinstance(event, Incident)]
    return [event.run_name for event in incidents if event.category == "worker_death"]


@pytest.mark.parametrize(
    ("broken", "died", "named"),
    [
        # Both runs of the first seed, which is therefore not tried again, and the first one of the next seed.
        ("ab", ["a/0", "b/0", "b/1"], "a/0, b/0 and b/1"),
        # Every run of one group: the first is tried again, then comes the next seed.
        ("b", ["b/0", "b/0", "b/1"], "b/0 and b/1"),
    ],
)
def test_the_same_failure_in_two_seeds_ends_the_experiment_without_losing_seeds(broken, died, named):
    world = world_with_failures({f"{group}/{seed}" for group in broken for seed in range(6)}, fake_plans.plan(seeds=6))
    assert deaths_of(world) == died
    assert not [name for name, run in world.recorded.runs.items() if run.lost]
    first, *_ = str(world.error).splitlines()
    assert first == f"{named} failed in the same way, so the experiment ends, with every seed kept: {WORDS}"
    assert world.warnings == [f"{died[0]} failed and is tried again: {WORDS}"]
    mended = world.resumed(len(world.journal)).to_the_end()
    assert set(states(mended).values()) == {"finished"}


def test_failures_that_differ_only_in_numbers_end_the_experiment_with_the_words_of_one_run():
    plan = fake_plans.plan(seeds=6)
    world = world_with_failures({f"{group}/{seed}" for group in "ab" for seed in range(6)}, plan, "ValueError: {run}7")
    first, *_ = str(world.error).splitlines()
    assert first == (
        "a/0, b/0 and b/1 failed in the same way, so the experiment ends, with every seed kept: "
        "for example in b/1: ValueError: b/17"
    )
    assert world.warnings == ["a/0 failed and is tried again: ValueError: a/07"]
    deaths = [event.detail for event in world.journal if isinstance(event, Incident)]
    assert deaths[1].endswith("failed in the same way as a/0: ValueError: b/07")


@pytest.mark.parametrize("seed", range(4))
def test_a_failure_in_every_group_of_one_seed_costs_that_seed(seed):
    world = world_with_failures({f"a/{seed}", f"b/{seed}"}, fake_plans.plan(seeds=4))
    assert world.error is None
    assert {name for name, state in states(world).items() if state == "lost"} == {f"a/{seed}", f"b/{seed}"}
    assert sorted(deaths_of(world)) == [f"a/{seed}", f"b/{seed}"]


def test_all_runs_of_a_seed_that_failed_count_as_failed():
    """A run that is only cancelled, because its partner failed, is not counted against its group."""
    world = world_with_failures({"a/1", "b/1"}, fake_plans.plan(seeds=6))
    given_up = [event for event in world.journal if isinstance(event, Incident) and event.category == "dropped_pair"]
    assert {event.run_name for event in given_up} == {"a/1", "b/1"}


def test_a_program_that_fails_for_a_few_seeds_in_every_group_costs_these_seeds():
    failing = {f"{group}/{seed}" for group in "ab" for seed in (1, 3, 4)}
    world = world_with_failures(failing, fake_plans.plan(seeds=6))
    assert world.error is None
    assert {name for name, state in states(world).items() if state == "lost"} == failing


def test_a_failing_run_costs_its_seed_if_another_seed_is_complete():
    """The first seed is set aside until then."""
    world = world_with_failures({"b/0"}, fake_plans.plan(seeds=6))
    assert world.error is None
    assert {name for name, state in states(world).items() if state == "lost"} == {"a/0", "b/0"}
    assert deaths_of(world) == ["b/0", "b/0"]


def world_with_a_cancelled_run():
    """Return a world in which b/0 has failed twice, and the worker of a/0, whose run was cancelled, with its run."""
    world = World(with_trainer_runs(fake_plans.plan(seeds=6)))
    while not all(worker.working and worker.milestone == 0 for worker in world.workers.values()):
        world.in_peace()
    slow = next(worker for worker in world.workers.values() if worker.run == "a/0")
    failures = 0
    while slow.run == "a/0":
        failing = next(worker for worker in world.workers.values() if worker.run == "b/0" or not worker.greeted)
        if failing.working and failing.milestone == 0:
            failures += 1
            world.hear(failing, failing.failed(cause=FEATURES))
        else:
            world.go_on(failing, Choices(b""))
        world.finish_round()
    assert failures == 2
    return world, slow


def test_a_late_report_of_a_postponed_seed_is_ignored():
    world, slow = world_with_a_cancelled_run()
    world.hear(slow, slow.reports[-1])
    assert world.recorded.runs["a/0"].recorded == 0
    assert world.to_the_end().error is None
    assert {name for name, state in states(world).items() if state == "lost"} == {"a/0", "b/0"}


def test_a_late_word_that_a_cancelled_run_failed_is_not_held_against_the_next_run():
    world, slow = world_with_a_cancelled_run()
    while not slow.run:
        world.in_peace()
    world.hear(slow, slow.failed(cause=FEATURES))
    world.finish_round()
    assert world.to_the_end().error is None
    assert {name for name, state in states(world).items() if state == "lost"} == {"a/0", "b/0"}


def test_a_failure_in_the_only_seed_ends_the_experiment():
    world = world_with_failures({"b/0"}, fake_plans.plan(seeds=1))
    assert "every seed was given up, so there is nothing to compare" in str(world.error)


def test_failures_of_one_group_after_a_complete_seed_cost_only_the_failing_seeds():
    """The group's setting may be the cause."""
    world = world_with_failures({f"b/{seed}" for seed in range(1, 5)}, fake_plans.plan(seeds=6))
    assert world.error is None
    assert [states(world)[f"b/{seed}"] for seed in range(6)] == ["finished", *["lost"] * 4, "finished"]


def test_a_failure_in_several_groups_of_more_seeds_than_are_complete_ends_the_experiment_without_losing_seeds():
    """Two seeds are complete, so the program works for some: the third failing seed in a row ends the experiment."""
    world = world_with_failures({f"{group}/{seed}" for group in "ab" for seed in range(2, 6)}, fake_plans.plan(seeds=6))
    assert [name[-1] for name in deaths_of(world)] == ["2", "2", "3", "3", "4"]
    assert f"failed in the same way, so the experiment ends, with every seed kept: {WORDS}" in str(world.error)
    assert "lost" not in states(world).values()


def test_failures_for_different_reasons_are_retried():
    world = World(with_trainer_runs(fake_plans.plan(seeds=1)))
    while not all(worker.working and worker.milestone == 0 for worker in world.workers.values()):
        world.in_peace()
    for worker, words in zip(list(world.workers.values()), ("KeyError: 3", "ValueError: 3"), strict=True):
        world.hear(worker, worker.failed(cause=cause_of_text(words)))
    world.finish_round()
    assert world.to_the_end().error is None


@pytest.mark.parametrize("failing_seeds", [(0,), (0, 1), (1, 3)])
def test_failures_in_half_of_the_seeds_at_work_cost_only_these_seeds(failing_seeds):
    """Four seeds are trained at a time. The others outlive the failures, so the program works for some."""
    failing = {f"{group}/{seed}" for group in "ab" for seed in failing_seeds}
    world = world_with_failures(failing, fake_plans.plan(cores=8, seeds=8))
    assert world.error is None
    assert {name for name, state in states(world).items() if state == "lost"} == failing


def test_failures_in_most_of_the_seeds_at_work_end_the_experiment_without_losing_seeds():
    failing = {f"{group}/{seed}" for group in "ab" for seed in (0, 1, 3)}
    world = world_with_failures(failing, fake_plans.plan(cores=8, seeds=8))
    assert "failed in the same way, so the experiment ends, with every seed kept" in str(world.error)
    assert "lost" not in states(world).values()


def test_seeds_that_began_after_the_first_failure_do_not_speak_for_the_program():
    """Two seeds are trained at a time. When the second one fails, the third has begun, but shown nothing yet."""
    failing = {f"{group}/{seed}" for group in "ab" for seed in (0, 1)}
    world = world_with_failures(failing, fake_plans.plan(cores=4, seeds=8))
    assert "failed in the same way, so the experiment ends, with every seed kept" in str(world.error)
    assert "lost" not in states(world).values()
