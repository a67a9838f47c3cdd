import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.name_cells import blank_if_missing, locate, read_name


def read(cell, column="group"):
    return read_name(cell, column, lambda: "a.csv, row 2")


@pytest.mark.parametrize(
    ("cell", "name"), [("new", "new"), (" new ", "new"), (7, "7"), ("n/a", "n/a"), ("x" * 60, "x" * 60)]
)
def test_a_name_is_the_text_of_its_cell(cell, name):
    assert read(cell) == name


@pytest.mark.parametrize("column", ["cluster", "order"])
@pytest.mark.parametrize("cell", ["", None, "n/a", "NaN", "None"])
def test_a_missing_cluster_or_order_has_no_name(column, cell):
    assert read(cell, column) == ""


@pytest.mark.parametrize("column", ["group", "seed", "task", "run"])
def test_an_empty_name_is_refused_with_its_row(column):
    with pytest.raises(UsageError, match=r"^a\.csv, row 2: empty, but every run needs a value here$"):
        read("  ", column)


@pytest.mark.parametrize(
    ("cell", "excerpt"), [("a\x1bb", r"'a\\\\x1bb'"), ("y" * 61, "'y+…?'")], ids=["not printable", "too long"]
)
@pytest.mark.parametrize("column", ["group", "cluster"])
def test_a_name_that_cannot_be_shown_in_a_line_is_refused(cell, excerpt, column):
    with pytest.raises(
        UsageError, match=rf"^a\.csv, row 2: {excerpt} is not a printable name of at most 60 characters$"
    ):
        read(cell, column)


def test_the_place_of_a_name_is_computed_for_errors_only():
    assert read_name("new", "group", lambda: pytest.fail("the place was computed")) == "new"


def test_a_cell_is_located_by_its_row_and_the_name_of_its_column_in_the_source():
    assert locate("a.csv", 7, {"group": "arm"}, "group") == "a.csv, row 7, column arm"
    assert locate("a.csv", 7, {"group": "arm"}, "seed") == "a.csv, row 7, column seed"


def test_only_words_for_missing_values_become_blank():
    assert [blank_if_missing(text) for text in ("n/a", "NULL", "", "0", "nano")] == ["", "", "", "0", "nano"]
