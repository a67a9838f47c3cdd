"""The sign-flip test against plain enumeration and scipy, and its largest number of pairs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outcomes.paired_outcomes import accuracies, columns, paired

from esper_ab.stats.descriptive.sign_flip import sign_flip, smallest_p


@given(paired, st.randoms(use_true_random=False))
def test_the_sign_flip_p_does_not_depend_on_sides_or_order(rows, random):
    a, b = columns(rows)
    assert sign_flip(a, b) == sign_flip(b, a)
    random.shuffle(rows)
    assert sign_flip(*columns(rows)).p == sign_flip(a, b).p


@given(st.lists(st.tuples(accuracies, accuracies), min_size=1, max_size=8))
def test_the_sign_flip_test_equals_plain_enumeration(rows):
    a, b = columns(rows)
    d = [x - y for x, y in rows]
    patterns = [
        abs(math.fsum(s * x for s, x in zip(signs, d, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(d))
    ]
    observed = abs(math.fsum(d))
    expected = sum(total >= observed - 1e-10 for total in patterns) / len(patterns)
    result = sign_flip(a, b)
    assert result.p == pytest.approx(expected, abs=1e-15)
    assert result.exact
    assert result.p >= result.smallest_p


def test_the_sign_flip_test_has_no_p_for_more_than_20_pairs():
    a = np.arange(21.0)
    assert sign_flip(a[:20], np.zeros(20)).exact
    long_result = sign_flip(a, np.zeros(21))
    assert long_result.p is None
    assert not long_result.exact


@pytest.mark.parametrize(("pairs", "p"), [(1, 1.0), (3, 0.25), (4, 0.125), (5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_the_sign_flip_p_is_smallest_if_all_signs_agree(pairs, p):
    assert smallest_p(pairs) == p
    assert sign_flip(np.arange(1.0, pairs + 1), np.zeros(pairs)).p == p
