"""Moderated variances: the published formula, and the t that follows from it.

Smyth (2004), "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", equation for the posterior variance: (d0 s0^2 + d s^2) / (d0 + d), with d0 + d degrees of freedom. This is
`var.post` of limma's `squeezeVar` with a fixed prior. R is no part of the tests; the numbers are worked out by hand.
"""

import math

import msgspec
import numpy as np
import pytest
from msgspec import UNSET
from scipy import stats

from esper_ab.stats.adjusted_difference import PriorVariance, adjusted_difference
from esper_ab.stats.moderated_variance import common_variance, moderated, moderated_variance, prior_of


def effect(differences, sides=None, positions=1):
    pairs = len(differences)
    sides = [(0, 0)] * pairs if sides is None else sides
    return adjusted_difference(differences, np.zeros(pairs), sides, positions)


EFFECTS = (effect([1.0, 3.0, 5.0, 7.0]), effect([2.0, 2.5, 3.0, 3.5]), effect([0.0, 4.0, 1.0, 9.0, 1.0]))


def test_the_posterior_variance_is_that_of_the_published_formula():
    """With d0 = 4, s0^2 = 2.5 and d = 5: (4 * 2.5 + 5 * 7) / 9 = 5, (10 + 5 * 1) / 9 = 5 / 3, (10 + 0) / 9 = 10 / 9."""
    posterior = moderated_variance(np.array([7.0, 1.0, 0.0]), np.array(5.0), np.array(2.5), 4)
    assert posterior == pytest.approx([5.0, 5.0 / 3.0, 10.0 / 9.0])


def test_the_common_variance_is_the_mean_weighted_by_degrees_of_freedom():
    assert common_variance(np.array([[2.0, 5.0]]), np.array([1.0, 3.0])) == pytest.approx([(2.0 + 15.0) / 4.0])


def test_the_moderated_t_of_three_comparisons_worked_out_by_hand():
    """Variances 20/3 and 5/12 with 3, 13.5 with 4 degrees of freedom: mean (20 + 5/4 + 54) / 10 = 7.525, which counts
    as 2. The first comparison has (2 * 7.525 + 20) / 5 = 7.01, and its t is 4 / sqrt(7.01 / 4) with 5 degrees.
    """
    prior = prior_of(EFFECTS, most_df=4)
    assert prior == PriorVariance(variance=pytest.approx(7.525), df=2)
    first = moderated(EFFECTS[0], prior)
    assert first.t == pytest.approx(4.0 / math.sqrt(7.01 / 4.0))
    assert (first.df, first.mean, first.sd) == (5, 4.0, EFFECTS[0].sd)
    assert first.p == pytest.approx(2.0 * stats.t.sf(first.t, 5))
    half_width = stats.t.isf(0.01, 5) * math.sqrt(7.01 / 4.0)
    assert first.interval(0.02) == pytest.approx((4.0 - half_width, 4.0 + half_width))


def test_an_adjusted_difference_is_moderated_with_its_own_information():
    sides = [(0, 1), (1, 0)] * 4
    own = effect([1.0, 4.0, 2.0, 6.0, 3.0, 3.0, 2.0, 7.0], sides, positions=2)
    result = moderated(own, PriorVariance(variance=3.0, df=4))
    assert result.se == pytest.approx(math.sqrt((4 * 3.0 + own.df * own.sd**2) / (4 + own.df) / own.information))
    assert (result.df, result.positions) == (own.df + 4, own.positions)


def test_fewer_variances_count_less_and_a_single_one_not_at_all():
    assert prior_of(EFFECTS[:2], most_df=4).df == 1
    assert prior_of(EFFECTS, most_df=1).df == 1
    assert prior_of(EFFECTS[:1], most_df=4) is None
    assert prior_of([EFFECTS[0], effect([2.0, 2.0, 2.0])], most_df=4) is None


def test_differences_without_a_spread_stay_without_a_test():
    constant = effect([2.0, 2.0, 2.0])
    assert moderated(constant, PriorVariance(variance=1.0, df=4)) == constant


def test_an_effect_is_moderated_once():
    prior = PriorVariance(variance=1.0, df=4)
    once = moderated(EFFECTS[0], prior)
    assert moderated(once, PriorVariance(variance=9.0, df=4)) == once
    assert EFFECTS[0].prior is UNSET
    assert "prior" not in msgspec.to_builtins(EFFECTS[0])
