"""JSON files that no other format recognises."""

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
def test_a_table_in_json_is_read_from_rows_or_columns(tmp_path, value):
    table = read(tmp_path, value)
    assert {name: list(cells) for name, cells in table.columns.items() if name != "index"} == {
        "group": ["a", "b"],
        "outcome": [1.5, None],
    }


def test_outcomes_nested_by_group_and_seed_are_read(tmp_path):
    table = read(tmp_path, {"a": {"3": 1, "7": 2}, "b": {"7": 3}})
    assert table.roles == {"group": "group", "seed": "seed"}
    assert dict(table.columns) == {"group": ["a", "a", "b"], "seed": ["3", "7", "7"], "score": [1, 2, 3]}


def test_every_number_in_the_result_of_one_run_is_an_outcome(tmp_path):
    table = read(tmp_path, {"name": "x", "loss": 0.5, "eval": {"return": 71.5, "solved": True}})
    assert table.outcomes == ("eval.return", "eval.solved", "loss")
    assert dict(table.columns) == {"name": ["x"], "loss": [0.5], "eval.return": [71.5], "eval.solved": [1.0]}


def test_rows_with_different_keys_are_filled_with_empty_cells(tmp_path):
    table = read(tmp_path, [{"a": 1}, {"b": 2, "deep": {"c": "x"}}])
    assert dict(table.columns) == {"a": [1, None], "b": [None, 2], "deep.c": [None, "x"]}
