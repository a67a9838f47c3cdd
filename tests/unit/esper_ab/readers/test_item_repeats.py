"""Several rows of one item and run: numbered repeats are averaged silently, others with a note."""

from support.outcomes.item_tables import item_columns

from esper_ab.readers.external_table import observations_of


def notes_of(columns, names=None):
    return observations_of("f", columns, range(2, 2 + len(columns["outcome"])), names).notes


def pasted_again(columns, rows):
    """The columns with the first `rows` rows once more at the end."""
    return {name: [*cells, *cells[:rows]] for name, cells in columns.items()}


def test_a_note_counts_rows_that_repeat_an_item_without_a_repeat_column():
    assert notes_of(pasted_again(item_columns(runs=2, items=20), 3)) == (
        "3 rows have the question of an earlier row of the same run (row 82 that of row 2), and no column numbers "
        "repeats: the outcomes of a question are averaged; remove the rows if they are copies.",
    )


def test_a_note_about_one_repeated_row_is_in_the_singular():
    (note,) = notes_of(pasted_again(item_columns(runs=2, items=20), 1))
    assert note.startswith("1 row has the question of an earlier row of the same run (row 82 that of row 2), and ")


def test_repeats_with_a_column_of_numbers_cause_no_note():
    columns = item_columns(runs=2, items=20, repeats=3)
    assert notes_of(columns) == ()
    columns["epoch"] = [0] * 240
    assert "160 rows have the question of an earlier row" in notes_of(columns)[0]


def test_repeats_in_a_named_column_cause_no_note():
    columns = item_columns(runs=2, items=20, repeats=3)
    columns["attempt"] = columns.pop("epoch")
    assert notes_of(columns, {"repeat": "attempt"}) == ()


def test_one_row_per_item_and_run_causes_no_note():
    assert notes_of(item_columns(runs=2, items=20)) == ()


def test_equal_items_of_different_tasks_are_different_items():
    columns = item_columns(runs=2, items=20)
    both = {name: cells * 2 for name, cells in columns.items()} | {"task": ["one"] * 80 + ["two"] * 80}
    assert notes_of(both) == ()
