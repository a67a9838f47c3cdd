"""Text that is a number in CSV files and in results of commands."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.plain_number import number_or_boolean, plain_number


@given(st.floats())
def test_every_float_that_python_prints_is_read_back(value: float) -> None:
    assert math.isnan(value) or plain_number(repr(value)) == value


@pytest.mark.parametrize("text", ["1", " 1.0 ", "+1.", "1e0", "10E-1", ".1e1"])
def test_all_spellings_of_the_number_one_are_read_as_1(text: str) -> None:
    assert plain_number(text) == 1.0


@pytest.mark.parametrize("text", ["", "1_0", "\u0661", "\uff11", "0x1", "1,5", "1 0", "e1", "1e", ".", "nano", "1\n2"])
def test_text_that_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        plain_number(text)


@pytest.mark.parametrize(("text", "value"), [("true", 1.0), (" False\n", 0.0), ("TRUE", 1.0), ("1e1", 10.0)])
def test_boolean_words_are_read_as_0_or_1(text: str, value: float) -> None:
    assert number_or_boolean(text) == value
    for wrong_text in ("yes", "t", ""):
        with pytest.raises(ValueError, match="not a number"):
            number_or_boolean(wrong_text)


@given(st.text())
def test_an_accepted_number_has_the_same_value_as_in_python(text: str) -> None:
    try:
        value = plain_number(text)
    except ValueError:
        return
    assert repr(value) == repr(float(text))
    assert text.isascii()
