"""Which blocks wait for a look, and what follows from one with and without early stop."""

from __future__ import annotations

import pytest
from support import fake_plans
from support.journals import started
from support.machine_world import World

from esper_ab.control.rules.looks import may_start
from esper_ab.journal.events import LookTaken
from esper_ab.journal.fold import begin


@pytest.mark.parametrize(("early_stop", "first_to_wait"), [(True, 10), (False, 20)])
def test_a_block_waits_for_a_look_before_it_only_where_that_look_may_stop(early_stop, first_to_wait):
    history = begin(started(fake_plans.plan(seeds=20, early_stop=early_stop)))
    assert history.design.looks == (10, 14, 20)
    assert [may_start(history, block) for block in history.blocks] == [n < first_to_wait for n in range(20)]


@pytest.mark.parametrize(("early_stop", "leaving", "runs"), [(True, ("a", "b"), 12), (False, (), 18)])
def test_groups_leave_once_they_are_told_apart_unless_there_is_no_early_stop(early_stop, leaving, runs):
    plan = fake_plans.plan(
        seeds=9, looks=(6, 9), episodes=1, unpaired=True, margin=0.001, early_stop=early_stop
    )  # fmt: skip
    world = World(plan).to_the_end()
    first = next(event for event in world.journal if isinstance(event, LookTaken))
    assert (first.replicates, first.leaving) == (6, leaving)
    assert sum(run.evaluation is not None for run in world.recorded.runs.values()) == runs


def test_a_single_seed_is_looked_at():
    world = World(fake_plans.plan(seeds=1)).to_the_end()
    assert [event.replicates for event in world.journal if isinstance(event, LookTaken)] == [1]
