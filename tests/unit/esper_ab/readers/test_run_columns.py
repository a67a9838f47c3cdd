from pathlib import Path

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.source_table import SourceTable
from esper_ab.readers.run_columns import long_of_columns, run_columns
from esper_ab.readers.steps import StepRule

RUNS = ("ppo-s0", "ppo-s1", "sac-s0", "sac-s1")


def table(columns):
    return SourceTable(Path("chart.csv"), "a CSV file", columns, range(2, 4))


def chart(*metrics):
    """Return a chart's export: per run and metric a column with two steps, and its ends."""
    columns = {"Step": ["1", "2"]}
    for number, run in enumerate(RUNS):
        for metric in metrics:
            columns |= {f"{run} - {metric}{end}": ["0", str(number)] for end in ("", "__MIN", "__MAX")}
    return table(columns)


def test_an_exported_chart_has_a_column_per_run_without_its_ends():
    columns = run_columns(chart("return"), "")
    assert (columns.runs, columns.metric, columns.step) == (RUNS, "return", "Step")
    assert columns.names == tuple(f"{run} - return" for run in RUNS)


def test_of_several_metrics_the_user_names_one():
    with pytest.raises(UsageError, match="2 numbers per run"):
        run_columns(chart("return", "loss"), "")
    assert run_columns(chart("return", "loss"), "loss").metric == "loss"


def test_columns_called_like_runs_have_a_run_each():
    columns = run_columns(table({"step": ["1", "2"]} | {run: ["0", "1"] for run in RUNS}), "")
    assert (columns.names, columns.metric, columns.step) == (RUNS, "", "step")


@pytest.mark.parametrize(
    "columns",
    [
        {"group": ["a", "b"], "seed": ["0", "0"], "outcome": ["1", "2"]},
        {run: ["0", "1"] for run in RUNS[:3]},
        {run: ["0", "1"] for run in RUNS} | {"note": ["x", "y"], "host": ["x", "y"]},
        {name: ["0", "1"] for name in ("red", "green", "blue", "grey")},
    ],
)
def test_other_tables_have_no_columns_of_runs(columns):
    assert run_columns(table(columns), "") is None


def test_a_table_with_a_column_per_run_becomes_one_with_a_row_per_run():
    source = chart("return")
    long = long_of_columns(source, run_columns(source, ""), "", StepRule(None, None))
    assert (long.metric, list(long.columns["group"])) == ("return", ["ppo", "ppo", "sac", "sac"])
    assert list(long.columns["return"]) == [0.0, 1.0, 2.0, 3.0]
    assert list(long.row_numbers) == [1, 2, 3, 4]


def test_a_single_run_is_no_comparison():
    source = table({"Step": ["1", "2"], "ppo-s0 - return": ["0", "1"]})
    with pytest.raises(UsageError, match="has one run, ppo-s0; a comparison needs several of two groups"):
        long_of_columns(source, run_columns(source, ""), "", StepRule(None, None))
