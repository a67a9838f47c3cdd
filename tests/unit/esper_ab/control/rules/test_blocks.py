"""Releases of blocks that are recorded at the end of a round."""

import pytest
from support.journals.synthetic import started
from support.plans import fake_plans

from esper_ab.control.rules.blocks import BlocksInProgress
from esper_ab.journal.fold import begin

PLAN = fake_plans.plan(episodes=2)


@pytest.mark.parametrize(
    ("milestone", "is_stopping", "is_released"),
    [
        (1, False, True),
        (1, True, False),
        (3, False, True),
        (3, True, True),
    ],
)
def test_a_stop_withholds_only_releases_that_start_an_episode(milestone, is_stopping, is_released):
    history = begin(started(PLAN))
    blocks = BlocksInProgress()
    (block,) = history.blocks
    runs = [history.runs[spec.ref.name] for spec in block.runs]
    blocks.begin(block, PLAN)
    for point in range(milestone + 1):
        for run in runs:
            blocks.arrived(run, point)
        due_releases = blocks.take_due(stopping=is_stopping and point == milestone)
    assert [(index, release.milestone) for index, release in due_releases] == (
        [(block.replicate, milestone)] if is_released else []
    )
    assert all(blocks.may_pass(run, milestone) == is_released for run in runs)
    assert not blocks.anything_due
