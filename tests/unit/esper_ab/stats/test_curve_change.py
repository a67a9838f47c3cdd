"""How much curves change over a part of training: a line per run, and an interval over runs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.curve_change import curve_change

FINITE = st.floats(-100.0, 100.0)
CURVES = st.integers(2, 8).flatmap(
    lambda points: st.lists(st.lists(FINITE, min_size=points, max_size=points), min_size=2, max_size=6)
)


def numbers(change):
    return change.mean, change.low, change.high


def test_the_change_of_a_line_is_from_its_first_point_to_its_last():
    change = curve_change([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert numbers(change) == pytest.approx((3.0, 3.0, 3.0))
    assert change.runs == 2


def test_the_interval_is_that_of_student_over_the_slopes_of_the_runs():
    curves = np.random.default_rng(3).normal(size=(9, 17))
    slopes = [16.0 * stats.linregress(range(17), curve).slope for curve in curves]
    low, high = stats.t.interval(0.9, 8, loc=np.mean(slopes), scale=stats.sem(slopes))
    assert numbers(curve_change(curves)) == pytest.approx((np.mean(slopes), low, high))


def test_points_that_are_not_known_are_left_out():
    lines = [[0.0, math.nan, 2.0, 3.0], [math.nan, 1.0, 2.0, math.nan]]
    assert numbers(curve_change(lines)) == pytest.approx((3.0, 3.0, 3.0))


@pytest.mark.parametrize("curves", [[], [[1.0, 2.0]], [[1.0, 2.0], [3.0, math.nan]], [[1.0], [2.0]]])
def test_fewer_than_two_curves_have_no_interval(curves):
    assert curve_change(curves) is None


@given(curves=CURVES, level=FINITE)
def test_the_level_of_curves_does_not_count(curves, level):
    moved = curve_change([[point + level for point in curve] for curve in curves])
    assert numbers(moved) == pytest.approx(numbers(curve_change(curves)), abs=1e-9)


@given(curves=CURVES, factor=st.floats(0.01, 100.0))
def test_the_change_has_the_unit_of_the_curves(curves, factor):
    scaled = curve_change([[factor * point for point in curve] for curve in curves])
    assert numbers(scaled) == pytest.approx([factor * number for number in numbers(curve_change(curves))], abs=1e-6)


@given(curves=CURVES)
def test_curves_read_backwards_change_in_the_opposite_direction(curves):
    mean, low, high = numbers(curve_change(curves))
    assert numbers(curve_change([curve[::-1] for curve in curves])) == pytest.approx((-mean, -high, -low), abs=1e-9)


@given(curves=CURVES)
def test_the_order_of_runs_does_not_count(curves):
    assert numbers(curve_change(curves[::-1])) == pytest.approx(numbers(curve_change(curves)), abs=1e-9)
