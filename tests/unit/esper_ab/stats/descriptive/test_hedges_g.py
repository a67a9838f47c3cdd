"""Hedges' g and its limits against its definition, statsmodels and scipy's noncentral t."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.meta_analysis import effectsize_smd
from support.outcomes.paired_outcomes import accuracies

from esper_ab.stats.descriptive.hedges_g import STATISTIC, correction, hedges_g
from esper_ab.stats.statistic import ComparisonContext


@given(st.lists(accuracies, min_size=2, max_size=9), st.lists(accuracies, min_size=2, max_size=9))
def test_hedges_g_equals_its_definition(a, b):
    effect_size = hedges_g(a, b)
    assume(effect_size is not None)
    pooled_sd = math.sqrt((np.var(a, ddof=1) * (len(a) - 1) + np.var(b, ddof=1) * (len(b) - 1)) / (len(a) + len(b) - 2))
    df = len(a) + len(b) - 2
    j = math.gamma(df / 2) / (math.sqrt(df / 2) * math.gamma((df - 1) / 2))
    assert effect_size.g == pytest.approx(j * (np.mean(a) - np.mean(b)) / pooled_sd, rel=1e-9, abs=1e-12)
    assert effect_size.low <= effect_size.g <= effect_size.high


def test_hedges_g_and_its_limits_equal_statsmodels():
    """statsmodels approximates the correction and uses normal limits; with 200 runs, neither matters."""
    a, b = np.add(np.random.default_rng(2).normal(0.0, 1.0, (2, 200)), [[0.6], [0.0]])
    effect_size = hedges_g(a, b)
    g, variance = effectsize_smd(a.mean(), a.std(ddof=1), a.size, b.mean(), b.std(ddof=1), b.size)
    half_width = 1.96 * math.sqrt(variance)
    assert (effect_size.g, effect_size.low, effect_size.high) == pytest.approx(
        (g, g - half_width, g + half_width), abs=0.005
    )


@pytest.mark.parametrize(("n", "m", "shift"), [(6, 6, 1.0), (6, 40, -2.0), (15, 15, 0.0), (3, 3, 500.0)])
def test_the_limits_are_quantiles_of_the_noncentral_t(n, m, shift):
    rng = np.random.default_rng(4)
    a = rng.normal(shift, 1.0, n)
    b = rng.normal(0.0, 1.0, m)
    effect_size = hedges_g(a, b)
    root = math.sqrt(n * m / (n + m))
    df = n + m - 2
    low, high = (limit / correction(df) * root for limit in (effect_size.low, effect_size.high))
    t = stats.ttest_ind(a, b).statistic
    assert stats.nct.sf(t, df, low) == pytest.approx(0.025, rel=1e-5)
    assert stats.nct.cdf(t, df, high) == pytest.approx(0.025, rel=1e-5)


def test_the_text_of_hedges_g_says_that_its_interval_ignores_pairs():
    facts = {"a": "new", "b": "old", "pairs": 3, "alpha": 0.05, "bound": 0.05, "claimed": False, "undecided": True}
    effect_size = hedges_g([1.0, 2.0, 5.0], [3.0, 4.0, 6.0])
    assert "(95 %, which ignores the pairs)" in STATISTIC.show(effect_size, ComparisonContext(**facts))
    assert "(95 %)" in STATISTIC.show(effect_size, ComparisonContext(**facts, paired=False))


def test_hedges_g_is_undefined_without_variation_or_for_single_runs():
    assert hedges_g([5.0, 5.0], [4.0, 4.0]) is None
    assert hedges_g([71.0], [70.0]) is None
