"""Arrays of 64-bit floats."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.floats import floats, norm, two


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([[1.0]], [[2.0]]), ([1.0], [float("inf")])])
def test_unequal_lists_and_infinite_values_are_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        two(a, b)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.integers(-1000, 900), st.randoms())
def test_the_norm_equals_the_euclidean_norm(values: list[float], power: int, random: random.Random) -> None:
    assert norm(floats(values)) == pytest.approx(math.hypot(*values))
    values = [value for value in values if abs(value) > 1e-3]
    if values:
        scaled_values = [math.ldexp(value, power) for value in values]
        random.shuffle(scaled_values)
        assert norm(floats(scaled_values)) == pytest.approx(math.ldexp(norm(floats(values)), power), rel=1e-12)
