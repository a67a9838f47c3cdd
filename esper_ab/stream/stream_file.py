"""Reads stream.toml, the question of a stream in a few lines."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

from esper_ab.api.setting_names import dotted
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.plain_values import describe_value
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.launcher import asked_launcher
from esper_ab.settings.toml_errors import toml_errors
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stream.question import StreamQuestion

_MOST_SEEDS = 1_000
_EXAMPLE = "train = 'python train.py --seed {seed} --out {out}'"


def read_stream_file(path: Path, folder: Path) -> StreamQuestion:
    """Return the question in a file, for runs that work in `folder`.

    Raises UsageError if the file is not there, is not TOML, or has an unknown key or an invalid value.
    """
    with toml_errors(path):
        tree = tomllib.loads(read_regular(path).decode("utf-8-sig"))
    values = {key: _checked(path, key, value) for key, value in tree.items()}
    names = {better: values.pop(better) for better in ("higher", "lower") if better in values}
    missing_lines = [] if "train" in values else [_EXAMPLE]
    if len(names) != 1:
        missing_lines.append("higher = 'NAME' or lower = 'NAME', one of them")
    if missing_lines:
        raise UsageError(f"{path}: missing: {'; '.join(missing_lines)}")
    ((better, outcome),) = names.items()
    if values.get("unchanged") and not all(map(_is_below, values["unchanged"])):
        raise UsageError(f"{path}: unchanged: name files and folders below {folder}, as in ['evaluate.py', 'envs']")
    asked_launcher(values.get("launcher", {}), f"{path} [launcher]", {"launcher": "name"})
    if values.get("shape") == "any" and values.get("outcome_range") is None:
        raise UsageError(f"{path}: shape = 'any' needs outcome_range = [LOW, HIGH], the possible outcomes")
    return StreamQuestion(folder=str(folder), outcome=outcome, better=better, **values)


def _checked(path: Path, key: str, value: Any) -> Any:
    """Return the value of a key; UsageError, which begins with the file, if the key or the value is invalid."""
    if key not in _EXPECTED:
        raise UsageError(f"{path}: no key {key!r}; {_remedy(key)}")
    if key == "unchanged" and isinstance(value, list):
        value = tuple(Path(item).as_posix() if isinstance(item, str) else item for item in value)
    elif key == "settings" and isinstance(value, dict):
        value = dotted(value)
    expected, is_valid = _EXPECTED[key]
    if not is_valid(value):
        raise UsageError(f"{path}: {key}: expected {expected}, not {describe_value(value)}")
    if key == "outcome_range":
        return tuple(map(float, value))
    return float(value) if key in ("margin", "alpha") else value


def _remedy(key: str) -> str:
    from esper_ab.settings.schema import FIELDS  # only for this message

    if key in FIELDS:
        return f"settings of `launch` are in the table [settings]: {key} = …"
    return did_you_mean(key, _EXPECTED)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _ascends(values: list[float]) -> bool:
    return values[0] < values[1]


def _is_below(path_text: str) -> bool:
    path = Path(path_text)
    return not path.is_absolute() and ".." not in path.parts and path != Path()


_EXPECTED = {
    "train": ("a command, a Python trainer or a function", _is_text),
    "higher": ("the name of an outcome", lambda value: isinstance(value, str)),
    "lower": ("the name of an outcome", lambda value: isinstance(value, str)),
    "code": ("a commit or a folder, as in '.'", _is_text),
    "margin": ("a number of at least 0", lambda value: _is_number(value) and value >= 0.0),
    "alpha": ("a number above 0 and below 0.5", lambda value: _is_number(value) and 0.0 < value < 0.5),
    "seeds": (
        f"a whole number from {LEAST_PAIRS} to {_MOST_SEEDS}",
        lambda value: _is_count(value) and LEAST_PAIRS <= value <= _MOST_SEEDS,
    ),
    "incumbent_seeds": (
        f"0, or a whole number from 2 to {_MOST_SEEDS}",
        lambda value: _is_count(value) and (value == 0 or 2 <= value <= _MOST_SEEDS),
    ),
    "shape": ("same or any", lambda value: value in ("same", "any")),
    "outcome_range": (
        "two numbers, the smaller one first, as in [0, 500]",
        lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and _ascends(value),
    ),
    "unchanged": (
        "a list of files and folders, as in ['evaluate.py']",
        lambda value: isinstance(value, tuple) and all(map(_is_text, value)),
    ),
    "settings": ("a table of settings of `launch`", lambda value: isinstance(value, dict)),
    "launcher": ("a table, as in launcher.name = 'slurm'", lambda value: isinstance(value, dict)),
}
