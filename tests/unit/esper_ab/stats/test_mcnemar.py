"""McNemar's exact test against the sum of binomial coefficients."""

import time
from fractions import Fraction
from math import comb

import pytest

from esper_ab.stats.mcnemar import mcnemar_p


@pytest.mark.parametrize(("x", "y"), [(0, 0), (3, 5), (990, 1010), (1000, 1001), (1400, 1300), (1800, 1200), (9, 2500)])
def test_the_mcnemar_p_is_twice_the_smaller_binomial_tail(x, y):
    tail = sum(comb(x + y, k) for k in range(min(x, y) + 1))
    exact_p = min(1.0, float(Fraction(2 * tail, 2 ** (x + y))))
    assert mcnemar_p(x, y) == pytest.approx(exact_p, rel=1e-11)
    assert mcnemar_p(y, x) == mcnemar_p(x, y)


def test_the_mcnemar_p_of_250000_discordant_pairs_is_computed_quickly():
    start = time.process_time()
    assert mcnemar_p(125_000, 125_900) == pytest.approx(0.0725, abs=1e-3)
    assert time.process_time() - start < 2.0
