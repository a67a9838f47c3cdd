from pathlib import Path

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.source_table import SourceTable
from esper_ab.readers.step_rows import item_columns, one_row_per_run, step_column_of
from esper_ab.readers.steps import StepRule

ROLES = {"group": "group", "seed": "seed", "outcome": "return"}
LAST = StepRule(None, None)
CURVES = {
    "group": ["a", "a", "b", "b"],
    "seed": ["0", "0", "0", "0"],
    "step": ["1", "2", "1", "2"],
    "return": ["5", "6", "7", "8"],
}


def table(columns):
    return SourceTable(Path("runs.csv"), "a CSV file", columns, range(2, 2 + len(columns["group"])))


def test_the_last_step_of_each_run_is_its_row():
    reduced = one_row_per_run(table(CURVES), ROLES, LAST)
    assert list(reduced.table.columns["return"]) == [6.0, 8.0]
    assert (reduced.table.columns["step"], reduced.table.row_numbers) == (["2", "2"], [3, 5])
    assert reduced.reading


def test_a_step_can_be_asked_for():
    reduced = one_row_per_run(table(CURVES), ROLES, StepRule(1.0, None))
    assert list(reduced.table.columns["return"]) == [5.0, 7.0]


def test_a_table_with_a_row_per_run_is_unchanged():
    rows = table({name: cells[::2] for name, cells in CURVES.items()})
    assert one_row_per_run(rows, ROLES, LAST).table is rows


def test_a_step_that_is_asked_for_needs_a_column_of_steps():
    without = table({name: cells for name, cells in CURVES.items() if name != "step"})
    with pytest.raises(UsageError, match="needs a column of steps; its columns are group, seed, return"):
        one_row_per_run(without, ROLES, StepRule(None, 3))
    assert one_row_per_run(without, ROLES, LAST).table is without


def test_epochs_are_repeats_of_an_item_and_else_steps():
    columns = {"group": ["a"], "seed": ["0"], "epoch": ["1"], "return": ["5"]}
    assert step_column_of(table(columns), ROLES) == "epoch"
    assert step_column_of(table({**columns, "question": ["7"]}), ROLES) == ""


def test_columns_called_like_items_and_their_epochs_are_of_items():
    columns = {"group": ["a"], "seed": ["0"], "epoch": ["1"], "question": ["7"], "return": ["5"]}
    assert item_columns(table(columns), ROLES) == ["question", "epoch"]
    assert item_columns(table({**columns, "step": ["1"]}), ROLES) == []


def test_each_item_of_a_run_has_a_row_of_its_own():
    columns = {**CURVES, "group": ["a"] * 4, "question": ["p", "p", "q", "q"]}
    reduced = one_row_per_run(table(columns), ROLES, LAST)
    assert list(reduced.table.columns["question"]) == ["p", "q"]
    assert list(reduced.table.columns["return"]) == [6.0, 8.0]
