"""Ranges of outcomes: what is read, what is refused, and for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.outcome_range import read_range


@given(low=st.none() | st.integers(-9, 0), high=st.none() | st.integers(1, 9))
def test_a_range_is_read_as_it_is_written(low: int | None, high: int | None) -> None:
    text = f"{'' if low is None else low}..{'' if high is None else high}"
    if text == "..":
        with pytest.raises(UsageError, match="expected LOW"):
            read_range(text)
    else:
        assert read_range(text) == (low, high)


@pytest.mark.parametrize("text", [
    "3", "a..b", "1..1", "2..1", "..", "1..2..3", "nan..5", "-inf..5", "0..inf", "0..1e200", "1...2",
])  # fmt: skip
def test_what_is_no_range_of_numbers_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected LOW\.\.HIGH"):
        read_range(text)
