"""Random effects: published numbers of the BCG vaccine trials, statsmodels, and rules that hold for all inputs."""

import numpy as np
import pytest
from statsmodels.stats.meta_analysis import combine_effects

from esper_ab.stats.random_effects import random_effects

# Colditz et al. (1994), 13 trials of the BCG vaccine: diseased and healthy, vaccinated, then not (dat.bcg of metafor).
BCG = np.array(
    [
        (4, 119, 11, 128),
        (6, 300, 29, 274),
        (3, 228, 11, 209),
        (62, 13536, 248, 12619),
        (33, 5036, 47, 5761),
        (180, 1361, 372, 1079),
        (8, 2537, 10, 619),
        (505, 87886, 499, 87892),
        (29, 7470, 45, 7232),
        (17, 1699, 65, 1600),
        (186, 50448, 141, 27197),
        (5, 2493, 3, 2338),
        (27, 16886, 29, 17825),
    ],
    dtype=float,
)


def log_risk_ratios():
    a, b, c, d = BCG.T
    return np.log(a / (a + b)) - np.log(c / (c + d)), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)


def test_bcg_trials_have_the_published_heterogeneity():
    result = random_effects(*log_risk_ratios())
    assert result.q == pytest.approx(152.2330, abs=5e-5)  # metafor, test_misc_metan_vs_rma.uni_with_dat.bcg.r
    assert result.i_squared == pytest.approx(0.9212, abs=5e-5)  # (Q - 12) / Q
    assert result.df == 12


def test_paule_mandel_and_knapp_hartung_equal_statsmodels():
    y, v = log_risk_ratios()
    result = random_effects(y, v, floor=False)
    expected = combine_effects(y, v, method_re="iterated")
    assert result.tau**2 == pytest.approx(expected.tau2, abs=1e-9)
    assert result.mean == pytest.approx(expected.mean_effect_re, abs=1e-9)
    assert result.se == pytest.approx(expected.sd_eff_w_re_hksj, abs=1e-9)
    # By hand, from those numbers and the t quantile with 12 degrees of freedom, 2.178813.
    assert (result.low, result.high) == pytest.approx((-1.109098, -0.320838), abs=1e-6)


def test_estimates_that_agree_by_chance_do_not_shrink_the_interval():
    y, v = [1.0, 1.0, 1.0], [0.25, 0.25, 0.25]
    assert random_effects(y, v, floor=False).se == 0.0
    result = random_effects(y, v)
    assert result.tau == 0.0
    assert result.se == pytest.approx(np.sqrt(0.25 / 3))
    assert result.high - result.mean == pytest.approx(4.302653 * np.sqrt(0.25 / 3), abs=1e-6)


def test_the_result_scales_with_the_unit_and_ignores_the_order():
    y, v = np.array([1.0, 4.0, 2.5, 9.0]), np.array([0.5, 1.0, 0.3, 2.0])
    plain = random_effects(y, v)
    scaled = random_effects(10.0 * y[::-1], 100.0 * v[::-1])
    assert scaled.mean == pytest.approx(10.0 * plain.mean)
    assert scaled.tau == pytest.approx(10.0 * plain.tau)
    assert (scaled.q, scaled.i_squared) == pytest.approx((plain.q, plain.i_squared))


@pytest.mark.parametrize(("y", "v"), [([1.0], [1.0]), ([1.0, 2.0], [1.0, 0.0])])
def test_one_estimate_or_a_variance_of_zero_is_refused(y, v):
    with pytest.raises(ValueError, match="at least two estimates"):
        random_effects(y, v)
