"""Caveats of undecided comparisons that point to other tests."""

import numpy as np
import pytest
from support.outcomes.compared_designs import SMALL, compared, design, exploded, pairs_of

from esper_ab.verdict.undecided import undecided_caveats

LEVELS = np.array([15.0, 30.0, 60.0, 120.0, 250.0, 500.0, 900.0, 1900.0, 4000.0, 12000.0])
BASE = 70.0 + 3.0 * np.sin(np.arange(16))
ONE_FALLS = np.eye(16)[2] * 50.0
OTHER_FALLS = np.eye(16)[9] * 50.0


def join_caveats(rule, a, b, **changes):
    comparison = compared(rule, pairs_of(a, b), **changes)
    assert str(comparison.verdict) == "INCONCLUSIVE"
    sentences = list(undecided_caveats(comparison))
    assert set(sentences) <= set(comparison.warnings)
    return " ".join(sentences)


def test_undecided_pairs_of_one_direction_get_an_exact_p():
    noise = 1.0 + 0.01 * np.sin(np.arange(10))
    text = join_caveats(design(10), 2.0 * LEVELS * noise, LEVELS)
    assert "shaped is better in all 10 pairs (exact sign test p = 0.002)" in text
    assert "The outcome of shaped is 2.00 times that of simplified (1.98 to 2.02 in all pairs)" in text
    assert "logarithms" in text
    swapped_text = join_caveats(design(10), LEVELS, 2.0 * LEVELS * noise)
    assert "simplified is better in all 10 pairs" in swapped_text
    assert "The outcome of shaped is 0.50 times that of simplified" in swapped_text


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (LEVELS + LEVELS[::-1] ** 1.2, LEVELS),  # no constant ratio
        (-LEVELS, -2.0 * LEVELS),  # negative outcomes have no logarithm
    ],
)
def test_logarithms_are_advised_only_for_a_constant_ratio_of_outcomes(a, b):
    text = join_caveats(design(10), a, b)
    assert "shaped is better in all 10 pairs" in text
    assert "logarithm" not in text


def test_the_caveat_about_single_collapses_states_the_interquartile_mean():
    text = join_caveats(design(16), BASE + 3.0 + SMALL - ONE_FALLS, BASE - OTHER_FALLS)
    assert text.startswith("2 of 16 pairs lie far from the others (by more than three interquartile ranges), 1 below")
    assert "the interquartile means, which leave out a quarter of the runs at either end, is +" in text
    assert text.endswith("it decides nothing.")


WIDE = 12.0 * np.sin(1.7 * np.arange(16.0))


@pytest.mark.parametrize(
    ("a", "b", "changes"),
    [
        (BASE + WIDE, BASE, {}),  # an ordinary open comparison
        (np.full(16, 70.0), np.full(16, 70.0), {}),  # equal outcomes have a ratio of 1
        (BASE + 3.0 + SMALL - ONE_FALLS, BASE - OTHER_FALLS, {"findings": (exploded(),)}),  # the audit is the reason
        (BASE + 3.0 + SMALL - ONE_FALLS, BASE, {}),  # the runs that fall are all of one group
        (BASE + 3.0, BASE, {}),  # a constant difference is its own answer
    ],
)
def test_ordinary_undecided_comparisons_get_no_caveat_about_shape(a, b, changes):
    assert join_caveats(design(16), a, b, **changes) == ""


def test_there_is_no_caveat_about_shape_before_the_last_look():
    noise = 1.0 + 0.01 * np.sin(np.arange(6))
    assert join_caveats(design(10), 2.0 * LEVELS[:6] * noise, LEVELS[:6]) == ""
