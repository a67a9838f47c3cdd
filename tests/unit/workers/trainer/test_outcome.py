from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.trainer import read_source
from workers.trainer.outcome import WANDB_FILE, read_outcome

NUMBERS = st.floats(allow_nan=False)


def left(tmp_path: Path, source: str, text: str) -> float:
    found = read_source(source)
    (tmp_path / (found.path or WANDB_FILE)).write_text(text)
    return read_outcome(found, tmp_path)


@given(values=st.lists(NUMBERS, min_size=1))
def test_the_last_row_of_a_column_is_the_outcome(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    text = "step,return\n" + "".join(f"{step},{value!r}\n" for step, value in enumerate(values))
    assert left(tmp_path_factory.mktemp("out"), "csv:log.csv:return", text) == values[-1]


@given(value=NUMBERS)
def test_a_key_of_a_json_file_is_the_outcome_also_inside_of_others(
    tmp_path_factory: pytest.TempPathFactory, value: float
) -> None:
    out = tmp_path_factory.mktemp("out")
    assert left(out, "json:a.json:return", json.dumps({"return": value})) == value
    assert left(out, "json:a.json:eval.return", json.dumps({"eval": {"return": value}})) == value
    assert left(out, "json:a.json:eval.return", json.dumps({"eval.return": value})) == value


def test_only_ends_of_lines_end_a_row(tmp_path: Path) -> None:
    assert left(tmp_path, "csv:log.csv:return", "return,note\n1.5,\"two\nlines\"\n2.5,first\u2028half\n") == 2.5


def test_the_last_value_given_to_wandb_is_the_outcome(tmp_path: Path) -> None:
    assert left(tmp_path, "wandb:return", "1.0\nnan\n3.5\n") == 3.5


@pytest.mark.parametrize(("source", "text"), [("json:a.json:x", '{"x": 3.5}'), ("csv:a.csv:x", "x,y\n3.5,1\n")])
def test_a_byte_order_mark_is_none_of_the_text(tmp_path: Path, source: str, text: str) -> None:
    assert left(tmp_path, source, f"\ufeff{text}") == 3.5


def test_a_whole_number_beyond_any_float_is_infinite(tmp_path: Path) -> None:
    assert left(tmp_path, "json:a.json:return", json.dumps({"return": -(10**400)})) == -math.inf


@pytest.mark.parametrize(("source", "text", "words"), [
    ("json:a.json:x", '{"y": 1}', "a.json: no key 'x'; there is y"),
    ("json:a.json:x.z", '{"x": 1}', "no key 'x.z'"),
    ("json:a.json:x", '{"x": [1]}', "x is list, not a number"),
    ("json:a.json:x", '{"x": true}', "x is bool, not a number"),
    ("json:a.json:x", '{"x": ', "a.json: not JSON"),
    ("csv:a.csv:x", "y,z\n1,2\n", "no column 'x'; there is y, z"),
    ("csv:a.csv:x", "x\n", "no row"),
    ("csv:a.csv:y", "x,y\n1\n", "y is '', not a number"),
    ("csv:a.csv:x", "", "no column 'x'; there is nothing"),
    ("csv:a.csv:x", f"x\n{'y' * 200_000}\n", "a.csv: not CSV: field larger"),
    ("json:a.json:x", f'{{"x": 1{"0" * 5000}}}', "a.json: not JSON"),
    ("json:a.json:x", "[" * 100_000, "a.json: not JSON"),
])  # fmt: skip
def test_an_outcome_that_cannot_be_read_says_what_is_there(tmp_path: Path, source: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace(".", r"\.").replace("[", r"\[")):
        left(tmp_path, source, text)


def test_a_file_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "model.pt").touch()
    with pytest.raises(ValueError, match=r"left no a\.json in \{out\}; it left sub/model\.pt"):
        read_outcome(read_source("json:a.json:x"), tmp_path)
    with pytest.raises(ValueError, match="gave no number as 'x' to wandb"):
        read_outcome(read_source("wandb:x"), tmp_path)


@pytest.mark.parametrize(
    "text", ["json:x", "x", "csv:/etc/passwd:x", "json:../a.json:x", "json::x", "wandb:", "toml:a:b"]
)
def test_what_names_no_outcome_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected json:PATH:KEY, csv:PATH:COLUMN or wandb:KEY"):
        read_source(text)
