"""Parameters of a user's function, from the command line and from a file."""

from pathlib import Path

import pytest

from esper_ab.settings.assignments import Assignment
from esper_ab.settings.values import convert_value


def convert_constant(value, *, is_text):
    return convert_value(Assignment("reward.params.w", value, "origin", Path("/"), is_text=is_text))


@pytest.mark.parametrize(
    ("written_value", "typed_value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("'3'", "3"),
        ('"a b"', "a b"),
        ("fast", "fast"),
        ("'unclosed", "'unclosed"),
    ],
)
def test_a_constant_on_the_command_line_is_typed_by_its_spelling(written_value, typed_value) -> None:
    value = convert_constant(written_value, is_text=True)
    assert (value, type(value)) == (typed_value, type(typed_value))
    assert convert_constant(written_value, is_text=False) == written_value
    assert convert_constant(typed_value, is_text=False) == typed_value


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ("my train.py:train", "my train.py"),
        ("lab.parts:train", "lab/parts.py"),
        ("lab:train", "lab/__init__.py"),
        ("hull.parts:train", "src/hull/parts.py"),
    ],
)
def test_a_function_as_trainer_is_found_in_the_folder_and_in_its_src(tmp_path: Path, written: str, file: str) -> None:
    for module in ("lab/__init__.py", "lab/parts.py", "src/hull/parts.py", "src/lab/parts.py"):
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).touch()
    value = convert_value(Assignment("trainer", written, "origin", tmp_path, is_text=True))
    assert value == f"{tmp_path / file}:train"


def test_a_module_elsewhere_stays_as_written(tmp_path: Path) -> None:
    value = convert_value(Assignment("trainer", "lab.parts:train", "origin", tmp_path, is_text=True))
    assert value == "lab.parts:train"
