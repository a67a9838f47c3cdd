"""The descriptive statistics of a comparison, from the catalogue esper_ab/stats/descriptive."""

import pytest

from esper_ab.verdict.descriptive import describe


@pytest.mark.parametrize(
    ("a", "b", "paired"),
    [
        ([1.0, 2.0, 5.0, 4.0], [3.0, 6.0, 7.0, 8.0], True),
        ([1.0, 2.0, 5.0, 4.0], [3.0, 6.0, 7.0], False),
        ([0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], True),
        ([0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0], False),
    ],
)
def test_every_comparison_has_a_mann_whitney_test(a, b, paired):
    binary = {*a, *b} <= {0.0, 1.0}
    statistics = describe(a, b, 0, paired=paired, binary=binary)
    assert statistics["mann_whitney"].u == sum((x > y) + 0.5 * (x == y) for x in a for y in b)
    assert (statistics["signed_rank"] is not None) == (paired and not binary)
    assert (statistics["permutation"] is not None) == (not paired and not binary)
