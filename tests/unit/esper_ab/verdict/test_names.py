import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.verdict.names import Names, first_rows

TEXTS = st.lists(st.sampled_from(["a", "b", "10", "9", "x y", ""]), max_size=12)


@given(TEXTS)
def test_each_row_keeps_its_name_and_names_are_in_the_order_of_their_first_rows(texts):
    names = Names.of(texts)
    assert names.of_rows() == texts
    assert names.names == tuple(dict.fromkeys(texts))


@given(TEXTS)
def test_the_first_row_of_each_name_is_found(texts):
    names = Names.of(texts)
    assert first_rows(names.codes, len(names.names)).tolist() == [texts.index(name) for name in names.names]


def test_a_name_without_rows_has_no_first_row():
    assert first_rows(np.array([2, 0]), 4).tolist() == [1, 2, 0, 2]


@given(TEXTS, st.lists(st.integers(0, 11), max_size=8))
def test_names_of_some_rows_are_those_of_a_shorter_table(texts, places):
    rows = [place for place in places if place < len(texts)]
    taken = Names.of(texts).taken(np.array(rows, dtype=np.int64))
    expected = Names.of([texts[row] for row in rows])
    assert (taken.of_rows(), taken.names) == (expected.of_rows(), expected.names)


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_names_in_blocks_are_those_of_all_rows(blocks, order):
    chosen = [blocks[number % len(blocks)] for number in order]
    expected = Names.of([name for block in chosen for name in block])
    joined = Names.in_blocks(chosen)
    assert joined.of_rows() == expected.of_rows()
    assert {*joined.names} == {*expected.names}


def test_names_that_become_equal_have_one_number():
    renamed = Names.of(["07", "8", "7", "07"]).renamed(lambda name: str(int(name)))
    assert (renamed.of_rows(), renamed.names) == (["7", "8", "7", "7"], ("7", "8"))


def test_rows_with_a_wanted_name_are_among_them():
    assert Names.of(["a", "b", "a", "c"]).among(["a", "c", "z"]).tolist() == [True, False, True, True]


def test_whole_numbers_are_ordered_by_size_and_other_names_alphabetically():
    assert Names.of(["10", "-2", "9"]).in_order == ("-2", "9", "10")
    assert Names.of(["s10", "s9", "7"]).in_order == ("7", "s10", "s9")
    assert Names.of([]).in_order == ()
    assert not Names.of([""]).whole


@given(TEXTS)
def test_ranks_are_places_in_alphabetical_order(texts):
    assert Names.of(texts).ranks.tolist() == [sorted({*texts}).index(text) for text in texts]


def test_one_name_for_all_rows_occurs_only_if_there_are_rows():
    assert Names.same("x", 3).of_rows() == ["x"] * 3
    assert Names.same("x", 0).names == ()
