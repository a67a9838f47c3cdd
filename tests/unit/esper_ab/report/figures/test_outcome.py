"""What is said of the figure of outcomes, and of the table beside it."""

from __future__ import annotations

import pytest
from support.journals import Synthetic

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.figures.outcome import outcomes
from esper_ab.report.tables.groups import results_table


@pytest.mark.parametrize(("kind", "outcome", "one", "of"), [
    ("growth", "evaluation", "one trained policy", "held-out accuracy, %: mean (SD)"),
    ("growth", "last-tenth", "the mean of the last tenth of the training episodes", "mean of the last tenth of the tr"),
    ("growth", "curve-mean", "the mean of all training episodes", "held-out accuracy, %, mean of all training ep"),
    ("trainer", "last-tenth", "the mean of the last tenth of the points", "mean of the last tenth of the points"),
])  # fmt: skip
def test_what_a_runs_number_is_is_said_by_the_outcome(kind, outcome, one, of):
    made = content(fold(Synthetic(replicates=6, episodes=3, n_envs=1, kind=kind, outcome_over=outcome).events()))
    drawing = outcomes(made)
    assert drawing is not None
    assert drawing.caption.startswith(f"One point per run: {one}. Bar")
    assert of in results_table(made).columns[-1]
