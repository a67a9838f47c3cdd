"""The interquartile mean and its bootstrap interval against scipy, and warnings for few runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.outcomes.paired_outcomes import accuracies

from esper_ab.stats import resampling
from esper_ab.stats.descriptive import iqm
from esper_ab.stats.descriptive.iqm import interquartile_means, iqm_difference
from esper_ab.stats.resampling import HONEST_FROM


@given(st.lists(accuracies, min_size=1, max_size=30))
def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end(runs):
    assert interquartile_means(np.array(runs)) == pytest.approx(stats.trim_mean(runs, 0.25), rel=1e-12, abs=1e-12)


def test_bootstrap_intervals_equal_scipy_up_to_resampling():
    rng = np.random.default_rng(8)
    a = rng.normal(70, 3, 14)
    b = 0.5 * a + rng.normal(33, 2, 14)

    def difference(x, y, axis):
        return stats.trim_mean(x, 0.25, axis=axis) - stats.trim_mean(y, 0.25, axis=axis)

    expected = stats.bootstrap(
        (a, b),
        difference,
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(9),
    )
    result = iqm_difference(a, b, np.random.default_rng(10))
    width = expected.confidence_interval.high - expected.confidence_interval.low
    assert result.low == pytest.approx(expected.confidence_interval.low, abs=0.04 * width)
    assert result.high == pytest.approx(expected.confidence_interval.high, abs=0.04 * width)


def test_a_bootstrap_of_few_runs_is_marked_as_unreliable():
    rng = np.random.default_rng(2)
    for n, is_honest in ((HONEST_FROM - 1, False), (HONEST_FROM, True)):
        a = rng.normal(70, 3, n)
        b = rng.normal(70, 3, n)
        assert iqm_difference(a, b, rng).honest is is_honest
    with pytest.raises(ValueError, match="at least two pairs"):
        iqm_difference([1.0], [2.0], rng)


def test_the_interval_does_not_depend_on_the_batches_of_resamples(monkeypatch):
    """Resamples are drawn in pieces, because 300,000 pairs times 10,000 resamples would take 24 GB."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(70, 3, (2, 57))
    whole = iqm_difference(a, b, np.random.default_rng(4))
    monkeypatch.setattr(resampling, "_DRAWS_AT_ONCE", 57 * 7 + 1)
    assert iqm_difference(a, b, np.random.default_rng(4)) == whole


def test_the_normal_interval_of_many_runs_equals_the_bootstrap_interval(monkeypatch):
    rng = np.random.default_rng(5)
    shared_part = rng.normal(70, 3, 4000)
    a, b = (shared_part + rng.exponential(2.0, 4000) for _ in range(2))
    bootstrap_interval = iqm_difference(a, b, np.random.default_rng(6))
    monkeypatch.setattr(iqm, "NORMAL_FROM", 4000)
    normal_interval = iqm_difference(a, b, np.random.default_rng(6))
    width = bootstrap_interval.high - bootstrap_interval.low
    assert normal_interval.mean == bootstrap_interval.mean
    assert normal_interval.low == pytest.approx(bootstrap_interval.low, abs=0.05 * width)
    assert normal_interval.high == pytest.approx(bootstrap_interval.high, abs=0.05 * width)
