"""Reads gate.toml, the question of a gate in a few lines."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esper_ab.api.setting_names import dotted
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.plain_values import describe_value
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.wording import did_you_mean
from esper_ab.gate.question import GateQuestion
from esper_ab.settings.toml_errors import toml_errors

_TEXTS = ("train", "higher", "lower", "claim", "base", "head", "undecided", "references", "references_limit")
_NUMBERS = ("margin", "minutes", "run_seconds")
KEYS = (*_TEXTS, *_NUMBERS, "guardrails", "settings")
_EXAMPLE = "train = 'python train.py --seed {seed} --out {out}'"


@dataclass(frozen=True, kw_only=True)
class GateFile:
    """The content of gate.toml, by key, and the file for messages."""

    path: Path
    values: Mapping[str, Any]

    def question(self, **overriding: Any) -> GateQuestion:
        """Return the question, with values of flags over those of the file; UsageError if it is incomplete."""
        values = {**self.values, **{key: value for key, value in overriding.items() if value is not None}}
        higher = values.pop("higher", None)
        lower = values.pop("lower", None)
        missing_lines = [f"{key} = …" for key in ("margin", "minutes") if key not in values]
        if "train" not in values:
            missing_lines.insert(0, _EXAMPLE)
        if (higher is None) == (lower is None):
            missing_lines.append("higher = 'NAME' or lower = 'NAME', one of them")
        if missing_lines:
            raise UsageError(f"{self.path}: missing: {'; '.join(missing_lines)}")
        try:
            return GateQuestion(
                outcome=lower if higher is None else higher, better="lower" if higher is None else "higher", **values
            )
        except UsageError as error:
            raise UsageError(f"{self.path}: ", *error.args) from None


def read_gate_file(path: Path) -> GateFile:
    """Read the file; UsageError if it is not there, is not TOML, or has an unknown key or a value of another type."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; `esper-ab init --gate` writes one")
    with toml_errors(path):
        tree = tomllib.loads(read_regular(path).decode("utf-8-sig"))
    return GateFile(path=path, values={key: _checked(path, key, value) for key, value in tree.items()})


def _checked(path: Path, key: str, value: Any) -> Any:
    """Return the value of a key of the file; UsageError, which begins with the file, if it has another type."""
    if key in _TEXTS:
        expected, is_valid = "text", isinstance(value, str)
        value = Path(value).expanduser() if is_valid and key == "references" else value
    elif key in _NUMBERS:
        expected, is_valid = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    elif key == "guardrails":
        expected = "a list of texts, as in ['lower wall_s margin 10%']"
        is_valid = isinstance(value, list) and all(isinstance(item, str) for item in value)
        value = tuple(value) if is_valid else value
    elif key == "settings":
        expected, is_valid = "a table of settings of `launch`", isinstance(value, dict)
        value = dotted(value) if is_valid else value
    else:
        raise UsageError(f"{path}: no key {key!r}; {_remedy(key)}")
    if not is_valid:
        raise UsageError(f"{path}: {key}: expected {expected}, not {describe_value(value)}")
    return value


def _remedy(key: str) -> str:
    from esper_ab.settings.schema import FIELDS  # only for this message

    if key in FIELDS and key not in KEYS:
        return f"settings of `launch` are in the table [settings]: {key} = …"
    return did_you_mean(key, KEYS)
