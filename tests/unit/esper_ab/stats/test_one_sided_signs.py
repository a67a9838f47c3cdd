"""The exact one-sided test of signs, beside the enumeration of all patterns."""

import itertools

import numpy as np
import pytest

from esper_ab.stats.exact_signs import signs_p
from esper_ab.stats.one_sided_signs import MAX_PAIRS, one_sided_signs_p, smallest_p


@pytest.mark.parametrize("pairs", [1, 2, 5, 10])
def test_all_patterns_are_counted(pairs):
    d = np.round(np.random.default_rng(pairs).normal(0.4, 1.0, pairs), 1)  # with ties
    sums = [np.dot(signs, np.abs(d)) for signs in itertools.product((-1, 1), repeat=pairs)]
    assert one_sided_signs_p(d) == np.mean(np.array(sums) >= d.sum() - 1e-9)


def test_half_of_the_two_sided_p_where_the_sum_is_positive():
    d = np.random.default_rng(3).normal(0.5, 1.0, 15)
    assert one_sided_signs_p(d) == pytest.approx(float(signs_p(d)) / 2.0)


def test_the_smallest_p_is_that_of_positive_differences():
    assert one_sided_signs_p(np.arange(1.0, 21.0)) == smallest_p(20)
    assert one_sided_signs_p(np.ones(7)) == smallest_p(7)
    assert one_sided_signs_p(np.zeros(5)) == 1.0


def test_too_many_pairs_are_refused():
    assert one_sided_signs_p(np.ones(MAX_PAIRS)) == smallest_p(MAX_PAIRS)
    with pytest.raises(ValueError, match="too many"):
        one_sided_signs_p(np.ones(MAX_PAIRS + 1))
