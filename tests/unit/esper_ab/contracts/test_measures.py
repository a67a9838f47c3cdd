"""The words for values and differences of an outcome."""

import pytest

from esper_ab.contracts.measures import Measure


@pytest.mark.parametrize(
    ("units", "value", "one", "several"),
    [
        ({"unit": "%"}, "2 %", "1 point", "2 points"),
        ({"unit": "%", "difference_unit": "points"}, "2 %", "1 point", "2 points"),
        ({"unit": "J"}, "2 J", "1 J", "2 J"),
        ({}, "2", "1", "2"),
    ],
)
def test_percentages_differ_by_points_and_other_values_by_their_unit(units, value, one, several):
    measure = Measure(name="outcome", label="error", **units)
    assert (measure.value("2"), measure.difference("1"), measure.difference("2")) == (value, one, several)
