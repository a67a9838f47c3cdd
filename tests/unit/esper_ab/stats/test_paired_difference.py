"""The paired difference against scipy, by rules that hold for all inputs, and by its error rate without an effect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from support.paired import columns, paired

from esper_ab.stats.paired_difference import paired_difference


@given(paired)
def test_paired_difference_equals_scipy(rows):
    a, b = columns(rows)
    result = paired_difference(a, b)
    assume(not result.degenerate)
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    assert result.t == pytest.approx(expected.statistic, rel=1e-12, abs=1e-12)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-11, abs=1e-12)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), rel=1e-12, abs=1e-12)
    assert result.df == len(rows) - 1


@given(paired)
def test_swapping_groups_flips_the_sign(rows):
    a, b = columns(rows)
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert there.mean == -back.mean
    assert there.p == back.p
    if there.low is not None:
        assert (there.low, there.high) == (-back.high, -back.low)


@given(paired, st.randoms(use_true_random=False))
def test_the_order_of_pairs_is_irrelevant(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = paired_difference(*columns(rows)), paired_difference(*columns(shuffled))
    assert one.mean == other.mean
    assert one.p == (None if other.p is None else pytest.approx(other.p, rel=1e-9, abs=1e-15))


def test_without_variation_nothing_is_divided():
    result = paired_difference([70.1, 71.1, 72.1], [68.1, 69.1, 70.1])
    assert result.degenerate
    assert result.mean == pytest.approx(2.0)
    assert (result.t, result.p, result.low, result.high) == (None, None, None, None)


def test_one_pair_has_an_estimate_only():
    result = paired_difference([71.0], [70.0])
    assert (result.mean, result.sd, result.p, result.low) == (1.0, None, None, None)


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([], []), ([math.nan], [1.0]), ([[1.0]], [[2.0]])])
def test_unpaired_or_non_finite_values_are_refused(a, b):
    with pytest.raises(ValueError, match="must be"):
        paired_difference(a, b)


def test_error_rate_and_coverage_without_an_effect():
    """3,000 simulated A/A experiments: nominal 5 % and 95 %, with the Monte-Carlo error of that many."""
    rng = np.random.default_rng(20260101)
    for pairs, rho in ((3, 0.0), (6, 0.6)):
        shared = rng.normal(0, math.sqrt(rho), (3000, pairs, 1))
        runs = 70 + 3.5 * (shared + rng.normal(0, math.sqrt(1 - rho), (3000, pairs, 2)))
        results = [paired_difference(runs[i, :, 0], runs[i, :, 1]) for i in range(len(runs))]
        rejected = np.mean([r.p <= 0.05 for r in results])
        covered = np.mean([r.low <= 0.0 <= r.high for r in results])
        assert abs(rejected - 0.05) < 0.012
        assert covered == pytest.approx(1.0 - rejected)
