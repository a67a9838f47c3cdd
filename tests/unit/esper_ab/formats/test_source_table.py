"""Rows of one file, and the values of one column over the steps of a run."""

from pathlib import Path

import numpy as np
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.source_table import SourceTable, series_of

TABLE = SourceTable(
    file=Path("progress.csv"),
    format="a log",
    columns={"steps": ["100", "200", "300"], "reward": ["1.5", "", "2.5"], "note": ["a", "", ""]},
    row_numbers=[2, 3, 5],
    roles={"step": "steps"},
)


def test_rows_without_a_value_are_not_part_of_a_series():
    series = series_of(TABLE, "reward")
    assert (series.steps.tolist(), series.values.tolist(), series.row_numbers) == ([100, 300], [1.5, 2.5], [2, 5])


def test_row_numbers_are_the_steps_of_a_table_without_steps():
    table = SourceTable(Path("f"), "a log", {"reward": np.array([1.0, np.nan, 2.0])}, [2, 3, 4])
    series = series_of(table, "reward")
    assert (series.steps.tolist(), series.values.tolist()) == ([2, 4], [1.0, 2.0])
    assert table.column("step") is None


def test_the_refusal_of_an_unknown_column_suggests_a_known_column():
    with pytest.raises(UsageError, match=r"progress.csv, a log, has no 'rewards'; did you mean reward"):
        series_of(TABLE, "rewards")


def test_the_refusal_of_a_cell_without_a_number_names_row_and_column():
    with pytest.raises(UsageError, match=r"progress.csv, row 2, column note: expected a number"):
        series_of(TABLE, "note")
