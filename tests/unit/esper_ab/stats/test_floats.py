"""Arrays of 64-bit floats."""

from __future__ import annotations

import numpy as np
import pytest

from esper_ab.stats.floats import floats, two


def test_whole_numbers_become_floats() -> None:
    assert floats([1, 2]).dtype == np.float64


def test_an_array_of_floats_is_not_copied() -> None:
    values = np.array([1.0, 2.0])
    assert floats(values) is values


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([[1.0]], [[2.0]]), ([1.0], [float("inf")])])
def test_unequal_lists_and_infinity_are_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        two(a, b)
