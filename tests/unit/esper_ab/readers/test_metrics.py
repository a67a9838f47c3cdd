from pathlib import Path

import numpy as np
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.source_table import SourceTable
from esper_ab.readers.metrics import are_numbers, candidates, fitting, metric_of, pick_metric


def table(columns, outcomes=(), better=""):
    return SourceTable(Path("run.csv"), "a CSV file", columns, range(2, 4), outcomes=outcomes, better=better)


def test_a_named_metric_must_exist():
    assert pick_metric("f", ["loss", "score"], "score") == "score"
    with pytest.raises(UsageError, match="f has no 'scroe'; did you mean score"):
        pick_metric("f", ["loss", "score"], "scroe")


def test_the_only_metric_needs_no_name():
    assert pick_metric("f", ["loss"], "") == "loss"


def test_of_several_metrics_the_user_must_name_one_and_sees_thirty():
    with pytest.raises(UsageError, match=r"f has 32 numbers per run; .*: m0, m1, .*, m29, and 2 more$"):
        pick_metric("f", [f"m{number}" for number in range(32)], "")


def test_without_numbers_there_is_no_outcome():
    with pytest.raises(UsageError, match="f has no column of numbers that could be the outcome"):
        pick_metric("f", [], "")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["loss", "train/return"], ["train/return"]),
        (["eval/return", "train/return"], ["eval/return"]),
        (["test/return", "eval/score"], ["test/return", "eval/score"]),
        (["loss", "lr"], ["loss", "lr"]),
    ],
)
def test_a_name_of_an_outcome_fits_if_it_is_the_only_one_that_was_evaluated_or_at_all(names, expected):
    assert fitting(names) == expected


def test_columns_of_steps_times_states_items_and_texts_are_no_candidates():
    numbers = ["1", "2"]
    names = ("step", "time", "rollout/_runtime", "state", "episode", "seed", "loss", "train/return")
    columns = {name: numbers for name in names} | {"host": ["a", "b"], "used": numbers}
    assert candidates(columns, ["used"]) == ["loss", "train/return"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(["", "1.5"], True), (["", ""], False), (["1", "x"], False), (np.zeros(2), True), ([None, 3], True)],
)
def test_a_column_of_numbers_has_numbers_and_nothing_else(cells, expected):
    assert are_numbers(cells) is expected


def test_the_outcome_of_several_tables_is_the_only_number_that_all_have():
    tables = [table({"loss": ["1", "2"], "lr": ["1", "2"]}), table({"loss": ["1", "2"]})]
    assert metric_of("runs", tables, "") == "loss"


def test_the_outcome_of_a_format_that_has_one_is_taken():
    assert metric_of("runs", [table({"r": ["1"], "l": ["2"]}, outcomes=("r", "l"), better="higher")], "") == "r"


def test_a_metric_that_only_a_later_table_has_can_be_named():
    assert metric_of("runs", [table({"a": ["1"]}), table({"b": ["1"]})], "b") == "b"
