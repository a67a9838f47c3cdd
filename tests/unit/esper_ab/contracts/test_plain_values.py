"""Numbers that fit into a message, and descriptions of those that do not."""

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
def test_digits_are_read_as_a_number_if_a_message_can_hold_it(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_a_huge_number_is_described_by_its_number_of_bits() -> None:
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
