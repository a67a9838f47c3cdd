"""Numbers of any length: which of them a message carries, and how the others are refused."""

import math
from fractions import Fraction

import pytest

from esper_ab.contracts.plain_values import LARGEST, as_float, describe_value, expected_instead, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        (str(LARGEST), LARGEST),
        (str(LARGEST + 1), None),
        ("1" * 5000, None),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1_0", None),
        ("²", None),
        ("٣", None),
        ("ten", None),
    ],
)
def test_digits_are_a_number_where_a_message_carries_it(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_a_number_that_python_does_not_write_is_told_by_its_size() -> None:
    assert expected_instead(1 << 20_000)
    assert describe_value(1 << 20_000) == "one of 20001 bits"
    assert describe_value(-3) == "-3"
    assert describe_value("x") == "'x'"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        (-(10**400), -math.inf),
        (10**400, math.inf),
        (Fraction(10**400), math.inf),
        ("0.5", 0.5),
    ],
)
def test_a_number_beyond_any_float_is_infinite(value: object, number: float) -> None:
    assert as_float(value) == number
