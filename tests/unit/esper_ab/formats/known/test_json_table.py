"""JSON in general."""

import json

import pytest

from esper_ab.formats.known import read_file


def read(folder, value):
    file = folder / "data.json"
    file.write_text(json.dumps(value))
    (table,) = read_file(file)
    return table


@pytest.mark.parametrize(
    "value",
    [
        [{"group": "a", "outcome": 1.5}, {"group": "b", "outcome": None}],
        {"group": ["a", "b"], "outcome": [1.5, None]},
        {"group": {"0": "a", "1": "b"}, "outcome": {"0": 1.5, "1": None}},
        {"columns": ["group", "outcome"], "index": [0, 1], "data": [["a", 1.5], ["b", None]]},
    ],
)
def test_rows_and_columns(tmp_path, value):
    table = read(tmp_path, value)
    assert {name: list(cells) for name, cells in table.columns.items() if name != "index"} == {
        "group": ["a", "b"],
        "outcome": [1.5, None],
    }


def test_outcomes_by_group_and_seed(tmp_path):
    table = read(tmp_path, {"a": {"3": 1, "7": 2}, "b": {"7": 3}})
    assert table.roles == {"group": "group", "seed": "seed"}
    assert dict(table.columns) == {"group": ["a", "a", "b"], "seed": ["3", "7", "7"], "score": [1, 2, 3]}


def test_the_result_of_one_run_has_its_numbers_by_name(tmp_path):
    table = read(tmp_path, {"name": "x", "loss": 0.5, "eval": {"return": 71.5, "solved": True}})
    assert table.outcomes == ("eval.return", "eval.solved", "loss")
    assert dict(table.columns) == {"name": ["x"], "loss": [0.5], "eval.return": [71.5], "eval.solved": [1.0]}


def test_names_of_rows_that_lack_some_are_kept(tmp_path):
    table = read(tmp_path, [{"a": 1}, {"b": 2, "deep": {"c": "x"}}])
    assert dict(table.columns) == {"a": [1, None], "b": [None, 2], "deep.c": [None, "x"]}
