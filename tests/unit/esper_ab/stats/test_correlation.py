"""Trend and autocorrelation of differences: rarely found where there are none, found where there are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from esper_ab.stats.correlation import drift
from esper_ab.stats.pair import Pair


def made(d):
    return [
        Pair(replicate=r, a=70.0 + x, b=70.0, position_a=r % 2, position_b=1 - r % 2) for r, x in enumerate(d)
    ]


def noted(law, n, experiments=1_000):
    rng = np.random.default_rng(n)
    found = [drift(made(law(rng, n)), 2) for _ in range(experiments)]
    return sum(one.slope_p <= 0.01 or one.autocorrelation_p <= 0.01 for one in found if one) / experiments


def autoregressive(rng, n):
    x = [rng.standard_normal()]
    for _ in range(n - 1):
        x.append(0.9 * x[-1] + 0.436 * rng.standard_normal())
    return np.array(x)


@pytest.mark.parametrize("n", [6, 10, 20])
def test_independent_differences_are_rarely_said_to_drift(n):
    for law in (
        lambda rng, n: rng.standard_normal(n), lambda rng, n: rng.standard_t(3, n),
        lambda rng, n: rng.lognormal(size=n), lambda rng, n: rng.standard_normal(n) - 20.0 * (rng.random(n) < 0.1),
    ):  # fmt: skip
        assert noted(law, n) <= 0.04  # two tests at 0.01, and five standard errors


def test_what_follows_a_group_over_replicates_is_found():
    assert noted(autoregressive, 20, 200) > 0.75
    assert noted(lambda rng, n: rng.standard_normal(n) + np.linspace(-2.0, 2.0, n), 10, 200) > 0.6


def test_without_positions_the_slope_is_that_of_linear_regression():
    d = np.random.default_rng(1).standard_normal(12) + 0.2 * np.arange(12)
    found, known = drift(made(d), 1), stats.linregress(np.arange(12), d)
    assert (found.slope, found.slope_p) == (pytest.approx(known.slope), pytest.approx(known.pvalue))
    shuffled = made(d)
    np.random.default_rng(2).shuffle(shuffled)
    assert drift(shuffled, 1) == found


@pytest.mark.parametrize("d", [np.arange(5.0), np.full(10, 3.0), np.zeros(8), [0.0] * 9 + [1.0]])
def test_too_few_or_degenerate_differences_show_no_drift(d):
    assert drift(made(d), 2) is None
