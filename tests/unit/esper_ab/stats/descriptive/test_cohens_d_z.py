"""Cohen's d_z against its definition, and its limits against scipy's noncentral t."""

import math

import numpy as np
import pytest
from scipy import stats

from esper_ab.stats.descriptive.cohens_d_z import STATISTIC, CohensDz, cohens_d_z


@pytest.mark.parametrize("shift", [-3.0, 0.0, 0.4, 9.0])
@pytest.mark.parametrize("pairs", [6, 30])
def test_the_limits_are_quantiles_of_the_noncentral_t(shift, pairs):
    a, b = np.add(np.random.default_rng(3).normal(0.0, 1.0, (2, pairs)), [[shift], [0.0]])
    effect_size = cohens_d_z(a, b)
    d = a - b
    root = math.sqrt(pairs)
    assert effect_size.d == pytest.approx(d.mean() / d.std(ddof=1))
    t = stats.ttest_rel(a, b).statistic
    assert stats.nct.sf(t, pairs - 1, effect_size.low * root) == pytest.approx(0.025, rel=1e-6)
    assert stats.nct.cdf(t, pairs - 1, effect_size.high * root) == pytest.approx(0.025, rel=1e-6)


def test_d_z_is_undefined_for_differences_without_spread():
    assert cohens_d_z([71.0] * 6, [70.0] * 6) is None


def test_d_z_is_shown_in_standard_deviations_with_its_interval():
    effect_size = CohensDz(d=0.5, low=-0.25, high=1.125)
    assert STATISTIC.show(effect_size, None) == "+0.50 SD of the differences, -0.25 to +1.12 (95 %)"
