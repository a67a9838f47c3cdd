"""How many more pairs a comparison is said to need."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from support.comparing import (
    compared,
    design,
    open_ended,
    pairs_of,
)

from esper_ab.design.pairs_needed import pairs_needed
from esper_ab.stats.anytime_t import log_evidence
from esper_ab.verdict.comparison import extendable
from esper_ab.verdict.vocabulary import Verdict


def test_what_the_budget_cannot_resolve_is_said_from_the_spread_never_from_the_difference():
    d = np.array([6.0, -5.0, 4.0, -6.0, 5.0, -3.0])
    low, high = (compared(design(6), pairs_of(60.0 + d + shift, np.full(6, 60.0))) for shift in (0.0, 2.0))
    for result in (low, high):
        assert result.verdict is Verdict.INCONCLUSIVE
        assert f"about {result.pairs_needed.pairs - 6} more pairs" in result.sentence
        assert result.pairs_anew.alpha == 0.05
        assert "by `esper-ab resume --seeds` (80 % range" in result.sentence
        price = f"an extension asks for p <= {result.pairs_needed.alpha:.2g}"
        assert f"{price}), or about {result.pairs_anew.pairs} in a new plan (80 % range" in result.sentence
        least = f"the smallest difference this plan can resolve is {result.smallest_resolvable:.2f} points"
        assert least in result.sentence
    assert low.pairs_needed == high.pairs_needed
    assert low.smallest_resolvable == pytest.approx(high.smallest_resolvable)
    assert low.pairs_needed.pairs > low.most_pairs == 6


def test_more_pairs_are_needed_when_it_is_looked_after_every_pair():
    d = np.array([6.0, -5.0, 4.0, -6.0, 5.0, -3.0])
    pairs = pairs_of(60.0 + d, np.full(6, 60.0))
    needed = compared(open_ended(), pairs).pairs_needed
    fixed = pairs_needed(float(np.std(d, ddof=1)), 5, 2.0, 0.05)
    beyond_the_plan = compared(design(6), pairs).pairs_needed
    assert fixed.pairs < needed.pairs < beyond_the_plan.pairs
    for found, evidence in ((needed, 20.0), (beyond_the_plan, 100.0)):  # an extension asks for five times as much
        t = stats.t.isf(found.alpha / 2.0, found.pairs - 1)
        assert log_evidence(t, found.pairs - 1, found.pairs) == pytest.approx(np.log(evidence))


def test_what_a_look_closed_is_not_said_to_take_an_extension():
    """Crossed at the first look, withdrawn at the last: `resume --seeds` has nothing left to decide."""
    d = np.array([3.0, 3.4, 2.8, 3.1, 3.3, 2.9, -6.0, -4.0, -7.0, -2.0])
    result = compared(design(10, early_stop=False), pairs_of(50.0 + d, np.full(10, 50.0)))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert (result.course.decision, extendable(result.question, result.course)) == ("crossed", False)
    assert "resume" not in result.sentence
    assert "more pairs would be needed" in result.sentence
