"""The Mann-Whitney test against scipy, exact and normal."""

import numpy as np
import pytest
from hypothesis import assume, given
from scipy import stats
from support.paired import columns, paired

from esper_ab.stats.descriptive.mann_whitney import STATISTIC, mann_whitney
from esper_ab.stats.statistic import Beside


@given(paired)
def test_mann_whitney_equals_scipy(rows):
    a, b = columns(rows)
    result = mann_whitney(a, b)
    assume(len({*a, *b}) > 1)
    expected = stats.mannwhitneyu(a, b, method="exact" if result.exact else "asymptotic")
    assert (result.u, result.p) == (expected.statistic, expected.pvalue)
    assert result.exact == (len({*a, *b}) == len(a) + len(b))


@pytest.mark.parametrize("shift", [0.0, 0.15, 0.4])
def test_mann_whitney_of_many_runs_is_normal_and_close_to_the_exact(shift):
    draw = np.random.default_rng(3)
    a, b = draw.normal(shift, 1.0, 101), draw.normal(0.0, 1.0, 100)
    many, few = mann_whitney(a, b), mann_whitney(a[:100], b)
    assert (many.exact, few.exact) == (False, True)
    for one, x in ((many, a), (few, a[:100])):
        assert one.p == pytest.approx(stats.mannwhitneyu(x, b, method="exact").pvalue, abs=0.001)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (range(3), range(3, 6), "exact"),
        (range(3), range(2, 5), "normal approximation, because of ties"),
        (range(100), range(99, 199), "normal approximation, because of ties"),
        (range(101), range(101, 202), "normal approximation, because of more than 100 runs a group"),
        (range(101), range(100, 201), "normal approximation, because of more than 100 runs a group"),
    ],
)
def test_what_is_shown_names_why_it_is_no_exact_test(a, b, said):
    beside = Beside(a="a", b="b", pairs=len(a), alpha=0.05, bound=0.05, claimed=False, undecided=True)
    assert f"({said}; pairing unused)" in STATISTIC.show(STATISTIC.of(list(a), list(b), 0), beside)


def test_mann_whitney_of_equal_runs_is_no_evidence():
    assert mann_whitney([5.0, 5.0], [5.0, 5.0]).p == 1.0
