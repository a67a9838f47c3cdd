import numpy as np
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.cell_columns import CellColumns
from esper_ab.readers.item_layout import ItemLayout
from esper_ab.readers.item_rows import item_table
from esper_ab.readers.name_cells import locate, read_name

USED = {"group": "arm", "outcome": "score"}
ROWS = {"arm": ["old", "old", "new", "new"], "prompt": ["a", "b", "b", "a"], "score": ["1", "0", "0.5", ""]}


def read(columns, used_columns=USED, item="prompt", run="", cluster=""):
    """Read rows of items; row 2 of the file is the first."""

    def place_of(row, column):
        return locate("a.csv", row + 2, {"item": item, **used_columns}, column)

    def name_of(cell, column, row):
        return read_name(cell, column, lambda: place_of(row, column))

    layout = ItemLayout(item=item, unit="prompt", run=run, cluster=cluster)
    return item_table(CellColumns(columns), used_columns, layout, name_of, place_of)


def names(codes, known_names):
    return ["" if code < 0 else known_names[code] for code in codes]


def test_each_row_keeps_its_group_item_and_score():
    table = read(ROWS)
    assert names(table.group, table.groups) == ["old", "old", "new", "new"]
    assert names(table.item, table.items) == ["a", "b", "b", "a"]
    np.testing.assert_array_equal(table.score, [1.0, 0.0, 0.5, np.nan])
    assert (table.unit, table.item_column) == ("prompt", "prompt")


def test_without_columns_of_tasks_runs_and_clusters_all_rows_have_the_same():
    table = read(ROWS)
    assert (table.tasks, table.runs, table.clusters) == (("",), ("",), ())
    assert table.cluster.tolist() == [-1] * 4


def test_rows_without_names_of_items_are_items_of_their_own():
    table = read(ROWS, item="")
    assert names(table.item, table.items) == ["0", "1", "2", "3"]


def test_spellings_of_one_seed_are_one_run():
    table = read({**ROWS, "seed": ["7", "07", "7.0", "8"]}, {**USED, "seed": "seed"}, run="seed")
    assert names(table.run, table.runs) == ["7", "7", "7", "8"]


def test_names_of_runs_that_differ_keep_their_spelling():
    table = read({**ROWS, "seed": ["07", "07", "8", "8"]}, {**USED, "seed": "seed"}, run="seed")
    assert names(table.run, table.runs) == ["07", "07", "8", "8"]


@pytest.mark.parametrize("is_named", [False, True], ids=["by the layout", "by the user"])
def test_rows_may_be_in_a_cluster_or_in_none(is_named):
    columns = {**ROWS, "scene": ["kitchen", "n/a", "kitchen", "hall"]}
    if is_named:
        table = read(columns, {**USED, "cluster": "scene"})
    else:
        table = read(columns, cluster="scene")
    assert table.clusters == ("kitchen", "hall")
    assert names(table.cluster, table.clusters) == ["kitchen", "", "kitchen", "hall"]


def test_a_score_without_an_item_is_refused():
    with pytest.raises(UsageError, match=r"^a\.csv, row 4, column prompt: empty, but every score needs an item$"):
        read({**ROWS, "prompt": ["a", "b", "", "a"]})


def test_a_lost_run_may_have_a_row_without_an_item():
    table = read({**ROWS, "prompt": ["a", "b", "b", ""]})
    assert names(table.item, table.items) == ["a", "b", "b", ""]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("arm", r"^a\.csv, row 4, column arm: empty, but every run needs a value here$"),
        ("score", r"^a\.csv, row 4, column score: expected a number, such as 71\.25, not 'high'"),
    ],
)
def test_an_invalid_cell_is_refused_with_its_row(column, message):
    cells = [*ROWS[column]]
    cells[2] = {"arm": "", "score": "high"}[column]
    with pytest.raises(UsageError, match=message):
        read({**ROWS, column: cells})
