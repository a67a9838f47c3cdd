"""Data of figures: quantiles and positions of points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.report.figures.curves import _middle_half
from esper_ab.report.figures.outcome import spread


@given(st.lists(st.floats(0, 100), min_size=4, max_size=40))
def test_the_shaded_half_of_curves_lies_between_the_quartiles(values):
    ((episode, *quarters),) = _middle_half([np.array([[1.0, value]]) for value in values], 10)
    assert episode == 1.0
    assert quarters == pytest.approx(np.quantile(values, (0.25, 0.75)), abs=1e-9)


@given(st.lists(st.floats(0, 100), max_size=40))
def test_spread_out_points_stay_in_their_row(values):
    placed_points = spread(values, 1.0)
    assert sorted(value for value, _ in placed_points) == sorted(values)
    assert all(abs(lift) <= 0.3 for _, lift in placed_points)
