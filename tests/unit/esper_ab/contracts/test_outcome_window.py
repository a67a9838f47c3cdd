"""Windows of training: the last tenth, the last third, everything."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.outcome_window import WINDOWS, in_window

SHARES = {"last-tenth": Fraction(1, 10), "last-third": Fraction(1, 3), "curve-mean": Fraction(1)}
CURVES = st.lists(st.floats(allow_nan=False), max_size=130)


@given(CURVES, st.sampled_from(sorted(SHARES)))
def test_a_window_is_the_shortest_end_of_a_curve_that_has_its_share(curve: list[float], window: str) -> None:
    ends = [curve[start:] for start in range(len(curve), -1, -1)]
    assert in_window(curve, window) == next(end for end in ends if len(end) >= SHARES[window] * len(curve))


@pytest.mark.parametrize(
    ("episodes", "count"), [(1, 1), (2, 1), (3, 1), (4, 2), (9, 3), (10, 4), (30, 10), (50, 17), (100, 34)]
)
def test_the_last_third_is_rounded_up_to_whole_episodes(episodes: int, count: int) -> None:
    assert list(in_window(range(episodes), "last-third")) == list(range(episodes - count, episodes))


def test_windows_are_listed_from_short_to_long() -> None:
    lengths = [len(in_window(range(100), window)) for window in WINDOWS]
    assert (lengths, set(WINDOWS)) == ([10, 34, 100], set(SHARES))
