"""When deaths give a seed up, and with it its block; when they end the experiment; what goes on side by side."""

import pytest
from support import fake_plans
from support.drawn import Choices
from support.machine_world import World

from esper_ab.contracts.errors import WorkerFailed
from esper_ab.control.rules.runs import any_complete
from esper_ab.journal.events import Incident, MilestoneReleased, RunStarted

PLAN = fake_plans.plan(seeds=6)


def dying(world, runs, point=1):
    """To its end, while each worker of these runs fails after that milestone."""
    while not world.over:
        world.in_peace()
        for worker in world.workers.values():
            if worker.run in runs and worker.at == point and worker.working and not world.over:
                world.hear(worker, worker.failed())
    world.error = world.error or world.machine.error_at_end()
    return {name: run.state for name, run in world.recorded.runs.items()}


def given_up(world):
    return [
        event for event in world.journal
        if isinstance(event, Incident) and event.category in ("dropped_pair", "cancelled")
    ]


def test_three_deaths_at_one_point_give_the_seed_up_in_every_group_and_no_other():
    world = World(fake_plans.plan(seeds=3, groups=("a", "b", "c"), cores=3))
    states = dying(world, {"b/1"})
    assert {name for name, state in states.items() if state == "lost"} == {"a/1", "b/1", "c/1"}
    assert {state for name, state in states.items() if not name.endswith("/1")} == {"finished"}
    first, *others = given_up(world)
    assert (first.category, first.run_name) == ("dropped_pair", "b/1")
    assert {entry.category for entry in others} == {"cancelled"}
    why = "seed 1 was given up: b/1 died 3 times after episode 0: reported an error: RuntimeError: the planted error"
    assert {entry.detail for entry in (first, *others)} == {why}
    deaths = [event for event in world.journal if getattr(event, "category", "") == "worker_death"]
    assert len(deaths) == 3
    assert world.error is None


def test_one_fault_in_every_seed_ends_the_experiment_and_what_is_left_can_be_resumed():
    world = World(PLAN)
    states = dying(world, {f"b/{seed}" for seed in range(6)})
    assert isinstance(world.error, WorkerFailed)
    assert "the planted error" in str(world.error)
    assert "several seeds were given up for the same reason and none was completed" in str(world.error)
    assert [states[f"a/{seed}"] for seed in range(6)] == ["lost"] * 3 + ["planned"] * 3
    mended = world.resumed(len(world.journal)).to_the_end()
    assert [mended.recorded.runs[f"a/{seed}"].state for seed in range(6)] == ["lost"] * 3 + ["finished"] * 3


def test_a_fault_that_comes_after_a_complete_seed_ends_nothing():
    world = World(PLAN)
    states = dying(world, {f"b/{seed}" for seed in range(1, 5)})
    assert world.error is None
    assert [states[f"b/{seed}"] for seed in range(6)] == ["finished", *["lost"] * 4, "finished"]


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
    while len(ready := [worker for worker in world.workers.values() if worker.working and worker.at == 0]) < 2:
        world.in_peace()
    ahead, behind = ready
    run = world.recorded.runs[ahead.run]
    while run.evaluation is None:
        world.go_on(ahead, Choices(b""))
        world.round()
    assert behind.at == 0
    assert all(len(event.runs) == 1 for event in world.journal if isinstance(event, MilestoneReleased))
