"""A time limit keeps further blocks from starting."""

from support.plans import fake_plans
from support.worlds.machine_world import World

from esper_ab.contracts.errors import OutOfTime
from esper_ab.journal.events import RunReady
from esper_ab.journal.fold import fold


def test_after_a_time_limit_no_block_starts_and_those_in_progress_end():
    world = World(fake_plans.plan(seeds=3))
    while not any(isinstance(event, RunReady) for event in world.journal):
        world.in_peace()
    world.machine.close()
    assert isinstance(world.to_the_end().error, OutOfTime)
    history = fold(world.journal)
    assert {run.ref.replicate for run in history.runs.values() if run.evaluation is not None} == {0}
    assert not any(run.started for run in history.runs.values() if run.ref.replicate > 0)
