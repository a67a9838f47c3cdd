"""The permutation test of unpaired runs against scipy and plain enumeration."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.outcomes.paired_outcomes import accuracies

from esper_ab.stats.descriptive.permutation import permutation

runs = st.lists(accuracies, min_size=2, max_size=5)


def compute_scipy_p(a, b, resamples):
    def difference(x, y, axis):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    sides = np.array(a), np.array(b)
    return stats.permutation_test(
        sides,
        difference,
        vectorized=True,
        n_resamples=resamples,
        alternative="two-sided",
        rng=np.random.default_rng(2),
    ).pvalue


@settings(deadline=None, max_examples=50)
@given(runs, runs)
def test_all_permutations_of_few_runs_are_enumerated(a, b):
    result = permutation(a, b, np.random.default_rng(1))
    differences = [
        abs(np.mean(first_values) - np.mean(second_values))
        for first_values, second_values in split_in_all_ways([*a, *b], len(a))
    ]
    assert result.exact
    assert result.assignments == len(differences)
    assert result.p == pytest.approx(np.mean(np.array(differences) >= abs(np.mean(a) - np.mean(b)) - 1e-10))


def split_in_all_ways(values, size):
    indices = set(range(len(values)))
    for chosen_indices in combinations(indices, size):
        yield [values[i] for i in chosen_indices], [values[i] for i in indices - set(chosen_indices)]


@pytest.mark.parametrize(("n", "m", "is_exact"), [(7, 8, True), (3, 60, True), (15, 18, False)])
def test_the_permutation_p_equals_scipy(n, m, is_exact):
    rng = np.random.default_rng(6)
    a = rng.normal(70.0, 3.0, n)
    b = rng.normal(68.0, 3.0, m)
    result = permutation(a, b, np.random.default_rng(1))
    assert result.exact is is_exact
    expected = compute_scipy_p(a, b, np.inf if is_exact else 9_999)
    # scipy doubles the smaller tail, which is the same for groups of equal number only.
    assert result.p == pytest.approx(expected, abs=0.03)


def test_more_than_a_thousand_runs_have_no_permutation_test():
    a, b = np.random.default_rng(5).normal(0.0, 1.0, (2, 501))
    assert permutation(a, b, np.random.default_rng(1)) is None
    assert permutation(a[1:], b[1:], np.random.default_rng(1)) is not None
