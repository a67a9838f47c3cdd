import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.pair import NO_PAIRS, Pair, Pairs, Samples, before, ends

PAIRS = st.lists(
    st.builds(
        Pair,
        replicate=st.integers(0, 9),
        a=st.floats(-9.0, 9.0),
        b=st.floats(-9.0, 9.0),
        position_a=st.integers(0, 3),
        position_b=st.integers(0, 3),
    ),
    max_size=8,
)


@given(PAIRS)
def test_pairs_in_columns_are_the_same_pairs(pairs):
    columns = Pairs.of(pairs)
    assert (list(columns), len(columns), bool(columns)) == (pairs, len(pairs), bool(pairs))
    assert list(columns[1:4]) == pairs[1:4]
    assert [columns[place] for place in range(len(pairs))] == pairs
    assert columns.differences.tolist() == [pair.a - pair.b for pair in pairs]
    assert columns.sides.tolist() == [[pair.position_a, pair.position_b] for pair in pairs]
    assert columns == Pairs.of(pairs)


@given(PAIRS, st.one_of(st.integers(0, 10), st.just(sys.maxsize)))
def test_the_pairs_before_a_replicate_are_in_the_order_of_replicates(pairs, replicates):
    earlier = sorted((pair for pair in pairs if pair.replicate < replicates), key=lambda pair: pair.replicate)
    assert list(before(Pairs.of(pairs), replicates)) == earlier


@given(PAIRS, PAIRS)
def test_pairs_follow_others(first, second):
    assert list(Pairs.of(first).followed_by(Pairs.of(second))) == first + second


def test_pairs_with_another_outcome_are_not_equal():
    pair = Pair(replicate=0, a=1.0, b=2.0, position_a=0, position_b=1)
    assert Pairs.of([pair]) != Pairs.of([Pair(replicate=0, a=1.0, b=2.5, position_a=0, position_b=1)])
    assert Pairs.of([pair]) != NO_PAIRS


def test_planned_samples_have_the_runs_of_the_first_replicates():
    samples = Samples(a=np.array([1.0, 2.0]), b=np.array([3.0]), places_a=np.array([0, 4]), places_b=np.array([2]))
    earlier = before(samples, 3)
    assert (earlier.a.tolist(), earlier.b.tolist(), earlier.places_a.tolist()) == ([1.0], [3.0], [0])
    assert len(before(samples, 1)) == 0


def test_samples_without_replicates_belong_to_every_look():
    samples = Samples(a=np.array([1.0, 2.0]), b=np.array([3.0]))
    assert before(samples, 0) == samples
    assert len(samples) == 1


def test_the_ends_are_the_least_and_the_greatest_outcome_of_each_group():
    assert ends(Samples(a=np.array([2.0, -1.0, 0.5]), b=np.array([7.0]))) == (-1.0, 2.0, 7.0, 7.0)
    assert ends(NO_PAIRS) == ()
