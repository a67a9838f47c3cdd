"""Signed-rank test against scipy and plain enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.signed_rank import MAX_EXACT, signed_rank

fine = st.floats(-20.0, 20.0).map(lambda x: round(x, 6))
coarse = st.integers(-4, 4).map(float)  # many ties and zeros


@given(st.lists(fine, min_size=1, max_size=14))
def test_without_ties_it_is_scipys_exact_test(d):
    sizes = np.abs(np.round(d, 10))
    assume(len(set(sizes.tolist())) == len(d) and 0.0 not in sizes)
    result = signed_rank(d, np.zeros(len(d)))
    assert result.exact
    assert result.p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, abs=1e-12)


def test_beyond_scipys_own_limit_it_is_still_exact():
    d = np.random.default_rng(5).normal(0.4, 1.0, 60)
    assert signed_rank(d, np.zeros(60)).p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-9)


def test_beyond_what_is_enumerated_it_says_approximate():
    d = np.random.default_rng(6).normal(0.1, 1.0, MAX_EXACT + 1)
    result = signed_rank(d, np.zeros(d.size))
    assert not result.exact
    assert result.p == pytest.approx(stats.wilcoxon(d, method="asymptotic").pvalue, rel=1e-12)


@given(st.lists(coarse, min_size=1, max_size=9))
def test_with_ties_and_zeros_it_equals_plain_enumeration(d):
    result = signed_rank(d, np.zeros(len(d)))
    kept = np.array([x for x in d if x != 0.0])
    assert result.n == kept.size
    if kept.size == 0:
        assert result.p == 1.0
        return
    ranks = stats.rankdata(np.abs(kept))
    sums = np.array([ranks @ np.array(signs) for signs in itertools.product((0, 1), repeat=kept.size)])
    observed = float(ranks[kept > 0].sum())
    tail = min(float(np.mean(sums <= observed)), float(np.mean(sums >= observed)))
    assert result.p == pytest.approx(min(1.0, 2.0 * tail), abs=1e-12)


@given(st.lists(st.tuples(fine, fine), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_swapping_flips_and_order_is_irrelevant(rows, random):
    a, b = [x for x, _ in rows], [y for _, y in rows]
    there, back = signed_rank(a, b), signed_rank(b, a)
    assert (there.p, there.n) == (back.p, back.n)
    assert there.estimate == -back.estimate
    random.shuffle(rows)
    assert signed_rank([x for x, _ in rows], [y for _, y in rows]) == there


def test_differences_equal_but_for_rounding_are_ties():
    a, b = [70.3, 60.1, 8.7, 73.3], [70.2, 60.2, 8.6, 70.3]  # sizes 0.1, 0.1, 0.1, spelt differently in binary
    assert len({abs(x - y) for x, y in zip(a, b, strict=True)}) > 2
    assert signed_rank(a, b).p == signed_rank([0.1, -0.1, 0.1, 3.0], np.zeros(4)).p
