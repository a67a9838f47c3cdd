import signal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.process_endings import how_ended, name_of_signal
from esper_ab.contracts.wording import counted, did_you_mean, n_pairs, named, significant

MANY = tuple(f"g{number}" for number in range(40))


def test_counts_other_than_one_are_plural():
    assert [counted(count, "run") for count in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert n_pairs(1) == "1 pair"


@given(st.floats(1e-9, 1e9), st.integers(1, 4))
def test_sizes_are_written_without_a_power_of_ten(value, digits):
    text = significant(value, digits)
    assert "e" not in text
    assert abs(Fraction(text) / Fraction(value) - 1) <= Fraction(51, 100 * 10 ** (digits - 1))


def test_comparisons_are_described_by_their_common_groups():
    assert named([("a", "b")]) == "a and b"
    assert named([("a", "b"), ("a", "c"), ("b", "c")]) == "any two of a, b, c"
    assert named([("b", "a"), ("c", "a")]) == "a and each of b, c"
    assert named([("a", "b"), ("c", "d")]) == "a and b, c and d"


def test_did_you_mean_suggests_a_close_name_or_lists_all_names() -> None:
    assert did_you_mean("shapd", ("shaped", "sparse")) == "did you mean shaped?"
    assert did_you_mean("x", MANY) == f"known: {', '.join(MANY)}"
    assert did_you_mean("x", ()) == "known: none"


@pytest.mark.parametrize("number", range(1, signal.NSIG))
def test_every_signal_has_a_name(number):
    name = name_of_signal(number)
    assert name == f"signal {number}" or signal.Signals[name] == number
    assert how_ended(-number) == f"was killed by {name}"
