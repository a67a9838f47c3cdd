"""Skewness against scipy, Johnson's t against the plain one, and the sentence where the two disagree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.comparing import compared, design, pairs_of

from esper_ab.design.design import Boundary
from esper_ab.stats.descriptive.shape import shape
from esper_ab.verdict.vocabulary import Verdict

SAID = "The groups differ in shape; the error rate here may be 10–20 %."
seeds = st.integers(0, 10**6)
RULE = design(14, boundaries=(Boundary(open=1, alpha=0.05, nominal_p=(0.05,)),))


@given(seeds, st.integers(6, 30))
def test_skewness_is_scipy_s_and_both_sides_have_one_p(rng_seed, n):
    rng = np.random.default_rng(rng_seed)
    a, b = -rng.exponential(size=n), 0.1 * rng.standard_normal(n)
    there, back = shape(a, b), shape(b, a)
    assert (there.skewness_a, there.skewness_b) == pytest.approx((stats.skew(a), stats.skew(b)))
    assert (back.skewness_a, back.skewness_b) == (there.skewness_b, there.skewness_a)
    assert back.johnson_p == pytest.approx(there.johnson_p)


def test_johnson_s_t_by_hand():
    """d = 1, 2, 3, 10: mean 4, s^2 = 50/3, third moment 45; t = (4 + 45/(6*4*50/3) + 45*16/(3*(50/3)^2)) * 2/s."""
    t = (4.0 + 45.0 / (24.0 * 50.0 / 3.0) + 45.0 * 16.0 / (3.0 * (50.0 / 3.0) ** 2)) * 2.0 / np.sqrt(50.0 / 3.0)
    assert shape([1.0, 2.0, 3.0, 10.0], [0.0] * 4).johnson_p == pytest.approx(2.0 * stats.t.sf(t, 3))


@pytest.mark.parametrize(("lift", "told"), [(1.2, True), (1.4, False)])
def test_the_sentence_stands_where_johnson_s_p_misses_the_bound(lift, told):
    tail = -np.array([0.01, 0.05, 0.1, 0.15, 0.22, 0.3, 0.4, 0.51, 0.65, 0.8, 1.0, 1.3, 1.7, 2.4])
    found = compared(RULE, pairs_of(70.0 + lift + tail, np.full(14, 70.0) + 0.0 * tail))
    assert found.descriptive["shape"].skewness_a < -1.0
    assert (found.verdict, SAID in found.caveats) == (Verdict.BETTER, told)
