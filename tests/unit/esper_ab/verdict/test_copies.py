"""Copies in tables of unknown origin, and equal outcomes that are not copies."""

import numpy as np
import pytest

from esper_ab.verdict.copies import ASKED, copies, equal_groups, near_copies


def _draw_normal(count, digits, seed, sd=4.0):
    return [float(value) for value in np.round(np.random.default_rng(seed).normal(60.0, sd, count), digits)]


def _find_copied_share(values, chance=ASKED):
    """Return the share of a group's outcomes that are copies, beside an ordinary group."""
    copied_values = copies({"a": values, "b": _draw_normal(20, 2, 99)}, chance)
    return sum(copied_values["a"].values()) / len(values) if "a" in copied_values else 0.0


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("runs", "times"), [(3, 2), (5, 2), (10, 2), (4, 3), (5, 4), (5, 6)])
def test_pasted_runs_are_recognised_as_copies(runs, times, seed):
    """Except for outcomes that end in zeros and so have fewer than four significant digits."""
    values = _draw_normal(runs, 3, seed)
    assert _find_copied_share(values * times) == sum(len(f"{value:g}") >= 5 for value in values) / runs >= 0.5


def test_two_equal_outcomes_with_many_digits_are_reported_as_copies():
    copied_values = copies({"a": [*_draw_normal(9, 12, 1), 60.123456, 60.123456], "b": _draw_normal(9, 12, 2)})
    assert {group: dict(values) for group, values in copied_values.items()} == {"a": {60.123456: 2}}


def test_two_equal_outcomes_with_two_decimals_are_not_reported():
    """Chance makes two of ten outcomes equal in 6 % of files if they have two decimals and an SD of 2."""
    values = [*_draw_normal(8, 2, 1), 59.56, 59.56]
    assert not copies({"a": values, "b": _draw_normal(10, 2, 2)})


NO_COPIES = {
    "few digits": lambda rng: [round(float(value), 1) for value in rng.normal(60.0, 4.0, 20)],
    "trailing zeros": lambda rng: [59.500, 59.500, 60.100, 60.100, *rng.normal(60.0, 4.0, 16).tolist()],
    "a cap": lambda rng: np.minimum(rng.normal(60.0, 4.0, 20), 61.23456).tolist(),
    "a floor": lambda rng: np.maximum(rng.normal(60.0, 4.0, 20), 58.76543).tolist(),
    "a cap and a floor": lambda rng: np.clip(rng.normal(60.0, 4.0, 20), 58.76543, 61.23456).tolist(),
    "k of 30": lambda rng: (rng.binomial(30, 0.6, 20) / 30).tolist(),
    "k of 300": lambda rng: (rng.binomial(300, 0.6, 20) / 300).tolist(),
    "k of 300, rounded": lambda rng: np.round(rng.binomial(300, 0.6, 20) / 300, 4).tolist(),
    "k of 300 in percent": lambda rng: np.round(100 * rng.binomial(300, 0.6, 20) / 300, 2).tolist(),
    "k of 10,000": lambda rng: (rng.binomial(10_000, 0.98, 20) / 10_000).tolist(),
}


@pytest.mark.parametrize("law", NO_COPIES)
def test_outcomes_made_equal_by_a_cap_or_grid_are_not_copies(law):
    """In 60 files with such outcomes, no question is asked, and at most one file has copies named."""
    rng = np.random.default_rng(7)
    files = [{"a": NO_COPIES[law](rng), "b": NO_COPIES[law](rng)} for _ in range(60)]
    asked_cases = [
        file
        for file in files
        for group, copied_values in copies(file, ASKED).items()
        if 2 * sum(copied_values.values()) >= len(file[group])
    ]
    assert len(asked_cases) == 0
    assert sum(bool(copies(file)) for file in files) <= 1


def test_a_group_equal_to_another_in_every_pair_is_a_copy():
    a = _draw_normal(8, 3, 1)
    assert equal_groups(a, list(a))
    assert not equal_groups(a, [*a[:7], a[7] + 0.001])
    assert not equal_groups([0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0])
    assert not equal_groups([60.123] * 4, [60.123] * 4)
    assert not equal_groups([60.123], [60.123])


@pytest.mark.parametrize(
    ("a", "b", "is_near_copy"),
    [
        ([57.25001, 57.25002, 57.25003], [55.00001, 55.00002, 55.00001], True),
        ([57.25] * 3, [55.01] * 3, True),
        ([500.0] * 8, [9.0] * 8, False),
        ([1.0] * 8, [0.0] * 8, False),
        ([57.25, 57.26, 57.27], [55.00001, 55.00002, 55.00001], False),
        ([57.25001], [55.00001], False),
    ],
)
def test_nearly_equal_outcomes_in_both_groups_are_near_copies(a, b, is_near_copy):
    assert near_copies(a, b) == near_copies(b, a) == is_near_copy


def test_empty_groups_have_no_copies():
    assert copies({"a": [], "b": []}) == {}
