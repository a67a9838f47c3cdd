"""The interquartile mean of each group, and its bootstrap interval, against scipy."""

import numpy as np
import pytest
from scipy import stats

from esper_ab.stats import resampling
from esper_ab.stats.descriptive import iqm_groups as module
from esper_ab.stats.descriptive.iqm_groups import iqm_groups


def draw(*sizes):
    rng = np.random.default_rng(8)
    return [rng.normal(70.0 + 4.0 * index, 3.0, n) for index, n in enumerate(sizes)]


@pytest.mark.parametrize("sizes", [(14, 14), (12, 31)])
def test_means_and_limits_equal_scipy_up_to_resampling(sizes):
    a, b = draw(*sizes)
    result = iqm_groups(a, b, np.random.default_rng(10))
    for runs, mean, limits in (
        (a, result.a, (result.low_a, result.high_a)),
        (b, result.b, (result.low_b, result.high_b)),
    ):
        assert mean == pytest.approx(stats.trim_mean(runs, 0.25))
        expected = stats.bootstrap(
            (runs,),
            lambda x, axis: stats.trim_mean(x, 0.25, axis=axis),
            vectorized=True,
            method="percentile",
            n_resamples=20_000,
            rng=np.random.default_rng(9),
        ).confidence_interval
        assert limits == pytest.approx((expected.low, expected.high), abs=0.06 * (expected.high - expected.low))


def test_an_interval_is_marked_as_unreliable_if_either_group_has_few_runs():
    a, b = draw(10, 9)
    assert iqm_groups(a, a, np.random.default_rng(1)).honest
    assert not iqm_groups(a, b, np.random.default_rng(1)).honest


def test_the_limits_do_not_depend_on_the_batches_of_resamples(monkeypatch):
    a, b = draw(57, 20)
    whole = iqm_groups(a, b, np.random.default_rng(4))
    monkeypatch.setattr(resampling, "_DRAWS_AT_ONCE", 57 * 7 + 1)
    assert iqm_groups(a, b, np.random.default_rng(4)) == whole


def test_the_normal_intervals_of_many_runs_equal_the_bootstrap_intervals(monkeypatch):
    rng = np.random.default_rng(5)
    a, b = rng.exponential(2.0, 4000), rng.normal(3.0, 1.0, 4000)
    bootstrap_intervals = iqm_groups(a, b, np.random.default_rng(6))
    monkeypatch.setattr(module, "NORMAL_FROM", 4000)
    normal_intervals = iqm_groups(a, b, np.random.default_rng(6))
    assert (normal_intervals.a, normal_intervals.b) == (bootstrap_intervals.a, bootstrap_intervals.b)
    assert normal_intervals.low_a == pytest.approx(
        bootstrap_intervals.low_a, abs=0.1 * (bootstrap_intervals.high_a - bootstrap_intervals.low_a)
    )
    assert normal_intervals.high_b == pytest.approx(
        bootstrap_intervals.high_b, abs=0.1 * (bootstrap_intervals.high_b - bootstrap_intervals.low_b)
    )
