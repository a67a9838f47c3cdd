"""The number of further pairs that a comparison needs."""

import numpy as np
import pytest
from scipy import stats
from support.outcomes.compared_designs import (
    BETTER_A,
    BETTER_B,
    compared,
    design,
    lost,
    open_ended,
    pairs_of,
    pairs_with_differences,
)

from esper_ab.design.pairs_needed import pairs_needed
from esper_ab.stats.anytime_t import log_evidence
from esper_ab.verdict.sample_size import extendable

CLEAR = pairs_of(BETTER_A, BETTER_B)
WIDE = np.array([6.0, -5.0, 4.0, -6.0, 5.0, -3.0])


def test_the_pairs_needed_do_not_depend_on_the_observed_difference():
    low, high = (compared(design(6), pairs_with_differences(WIDE + shift)) for shift in (0.0, 2.0))
    assert low.pairs_needed == high.pairs_needed
    for result in (low, high):
        extension = result.pairs_needed
        new_plan = result.pairs_anew
        price = (
            f"an extension requires p <= {extension.alpha:.2g}), or about {new_plan.pairs} in a new plan (80 % range"
        )
        assert price in result.sentence
        assert f"about {extension.pairs - 6} more pairs" in result.sentence
        least_text = f"the smallest difference it can detect is {result.smallest_resolvable:.2f} points"
        assert least_text in result.sentence
    assert low.smallest_resolvable == pytest.approx(high.smallest_resolvable)
    assert (low.pairs_anew.alpha, low.most_pairs) == (0.05, 6)
    losses = lost((6, None, 70.0), (7, None, 70.0))
    assert compared(design(16), CLEAR, lost=losses).most_pairs == 14


def test_a_rule_with_a_look_after_every_pair_needs_more_pairs():
    open_ = compared(open_ended(), pairs_with_differences(WIDE))
    planned_result = compared(design(6), pairs_with_differences(WIDE))
    assert open_.smallest_resolvable is None
    pairs_of_one_look = pairs_needed(float(np.std(WIDE, ddof=1)), 5, 2.0, 0.05)
    assert pairs_of_one_look.pairs < open_.pairs_needed.pairs < planned_result.pairs_needed.pairs
    for result, evidence in ((open_, 20.0), (planned_result, 100.0)):  # an extension requires five times as much
        pairs = result.pairs_needed.pairs
        t = stats.t.isf(result.pairs_needed.alpha / 2.0, pairs - 1)
        assert log_evidence(t, pairs - 1, pairs) == pytest.approx(np.log(evidence))


def test_no_extension_is_suggested_for_a_comparison_closed_by_a_look():
    """Crossed at the first look, withdrawn at the last: `resume --seeds` has nothing left to decide."""
    result = compared(
        design(10, early_stop=False), pairs_with_differences([3.0, 3.4, 2.8, 3.1, 3.3, 2.9, -6.0, -4.0, -7.0, -2.0])
    )
    assert (result.progress.decision, extendable(result.question, result.progress)) == ("crossed", False)
    assert "resume" not in result.sentence
    assert " more pairs" in result.sentence
