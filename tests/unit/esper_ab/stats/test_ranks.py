"""Ranks of values; equal values share the mean of their ranks."""

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.ranks import mid_ranks


@given(st.lists(st.sampled_from([-1.5, 0.0, -0.0, 2.0, 2.5]) | st.floats(-1e9, 1e9), max_size=40))
def test_equal_values_share_the_mean_of_their_ranks(values: list[float]) -> None:
    assert mid_ranks(values).tolist() == stats.rankdata(values).tolist()
