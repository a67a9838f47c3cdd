"""The Mann-Whitney test against scipy, exact and normal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.outcomes.paired_outcomes import accuracies

from esper_ab.stats.descriptive.mann_whitney import STATISTIC, mann_whitney
from esper_ab.stats.statistic import ComparisonContext

runs = st.lists(accuracies, min_size=1, max_size=12)
coarse = st.lists(st.integers(0, 4).map(float), min_size=2, max_size=12)


def make_context(**changes):
    facts = {"a": "new", "b": "old", "pairs": 6, "alpha": 0.05, "bound": 0.05, "claimed": False, "undecided": True}
    return ComparisonContext(**(facts | changes))


@settings(deadline=None)
@given(st.one_of(runs, coarse), st.one_of(runs, coarse))
def test_the_mann_whitney_test_equals_scipy(a, b):
    result = mann_whitney(a, b)
    ties = len({*a, *b}) < len(a) + len(b)
    assert (result.ties, result.exact) == (ties, not ties)
    expected = stats.mannwhitneyu(a, b, method="asymptotic" if ties else "exact")
    assert result.u == expected.statistic
    assert result.p == pytest.approx(1.0 if len({*a, *b}) == 1 else expected.pvalue, rel=1e-12)
    assert result.effect == expected.statistic / (len(a) * len(b))


@pytest.mark.parametrize(
    ("n", "m", "is_exact"), [(100, 100, True), (101, 100, False), (6, 1_000, True), (300, 50, False)]
)
def test_the_mann_whitney_p_is_exact_for_at_most_ten_thousand_combinations(n, m, is_exact):
    rng = np.random.default_rng(3)
    a = rng.normal(0.2, 1.0, n)
    b = rng.normal(0.0, 1.0, m)
    result = mann_whitney(a, b)
    assert result.exact is is_exact
    assert result.p == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue, abs=1e-12 if is_exact else 1e-3)


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        (range(3), range(3, 6), "(exact)"),
        (range(3), range(2, 5), "(normal approximation, corrected for ties)"),
        (range(101), range(101, 202), "(normal approximation, many runs)"),
    ],
)
def test_the_text_of_the_mann_whitney_test_names_the_kind_of_p(a, b, kind):
    assert kind in STATISTIC.show(STATISTIC.of(list(a), list(b), 0), make_context())


def test_the_text_of_the_mann_whitney_test_says_that_it_ignores_pairs():
    result = mann_whitney([1.0, 2.0, 5.0], [3.0, 4.0, 6.0])
    assert STATISTIC.show(result, make_context()) == (
        "U = 2, p = 0.40 (exact); new is higher than old in 22 % of combinations of runs; it ignores the pairs; made "
        "for unpaired runs (--unpaired)"
    )
    assert "; the usual rank test of unpaired runs (--unpaired)" in STATISTIC.show(result, make_context(paired=False))
