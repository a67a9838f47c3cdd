import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.cells import cell_text, outcome_of
from esper_ab.readers.cell_columns import CellColumns, outcomes

CELLS = st.sampled_from(["a", "a ", "1", 1, 1.0, True, None, "", math.nan, 2.5])
OUTCOMES = st.sampled_from(["1", "-2.5", "+.5", "1e3", "7.", "-0.0", "", "nan", "n/a", " 4 ", "true", 3, -0.0, 1.5])


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_each_row_has_the_text_of_its_own_cell(cells):
    names = CellColumns({"x": cells}).distinct("x").names(lambda cell, _: cell_text(cell))
    assert names.of_rows() == [cell_text(cell) for cell in cells]


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_each_distinct_cell_is_read_once_with_its_first_row(cells):
    seen = []
    CellColumns({"x": cells}).distinct("x").names(lambda cell, row: seen.append(row) or cell_text(cell))
    assert seen == sorted(seen)
    assert len(seen) <= len(cells)
    assert all(cells[row] is not cells[earlier] for row in seen for earlier in range(row) if cells[row] != 1)


@given(st.lists(st.tuples(*[st.sampled_from("abc")] * 3), min_size=1, max_size=12))
def test_combinations_are_the_distinct_rows_of_several_columns(rows):
    columns = CellColumns({name: [row[place] for row in rows] for place, name in enumerate("xyz")})
    assert columns.combinations(["x", "y", "z"]) == len({*rows})
    codes = columns.combined(["x", "z"]).tolist()
    pairs = [(row[0], row[2]) for row in rows]
    assert all((codes[i] == codes[j]) == (pairs[i] == pairs[j]) for i in range(len(rows)) for j in range(i))


@given(st.lists(OUTCOMES, min_size=1, max_size=6))
def test_a_column_of_outcomes_is_read_as_cell_by_cell(cells):
    read = outcomes(CellColumns({"x": cells}), "x", lambda cell, _: outcome_of(cell, ""))
    expected = [outcome_of(cell, "") for cell in cells]
    assert [None if math.isnan(value) else value for value in read.tolist()] == expected
    assert all(math.copysign(1.0, value) == 1.0 for value in read.tolist() if value == 0.0)


@pytest.mark.parametrize("cell", ["1_0", "1-2", "1e41", "1e400", "٣", "inf", math.inf])
def test_a_cell_that_is_no_outcome_is_left_to_the_reader_of_cells(cell):
    with pytest.raises(UsageError, match="row 1"):
        outcomes(CellColumns({"x": ["1", cell, cell]}), "x", lambda cell, row: outcome_of(cell, f"row {row}"))


@pytest.mark.parametrize("cells", [["a", " b"], ["a", "b "], ["a", ""], ["a", "\x07"], ["a", "b" * 61], ["a", 1]])
def test_cells_that_are_more_than_names_are_no_plain_names(cells):
    assert CellColumns({"x": cells}).distinct("x").plain_names(60) is None
    plain = CellColumns({"x": ["a", "b c", "a"]}).distinct("x").plain_names(60)
    assert plain.of_rows() == ["a", "b c", "a"]


def test_cells_that_cannot_be_hashed_are_distinct():
    assert len(CellColumns({"x": [[1], [1]]}).distinct("x").cells) == 2


def test_an_array_is_read_like_a_list():
    columns = CellColumns({"x": np.array([1.0, 2.0, 1.0])})
    assert columns.distinct("x").cells == [1.0, 2.0]
