"""The outcome that a command has left: a key of a JSON file, the last row of a CSV column, or a key given to wandb.log.

Every error is a ValueError of one line that names the file and what is there.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from esper_ab.contracts.plain_values import as_float, shown
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.trainer import OutcomeSource

WANDB_FILE = "wandb-values.txt"  # below {out}; written by standin/wandb.py
_SHOWN = 12  # names in a message


def read_outcome(source: OutcomeSource, out: Path) -> float:
    """Return the number, finite or not, that `source` names below the folder `out`."""
    if source.kind == "wandb":
        return _of_wandb(source.key, out / WANDB_FILE)
    try:
        text = read_regular(out / source.path).decode("utf-8-sig")
    except FileNotFoundError:
        there = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
        raise ValueError(f"the script left no {source.path} in {{out}}; it left {_list(there)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{source.path} in {{out}} cannot be read: {getattr(error, 'strerror', error)}") from None
    found = _of_json(source, text) if source.kind == "json" else _of_csv(source, text)
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        raise ValueError(f"{source.path}: {source.key} is {type(found).__name__}, not a number")
    try:
        return as_float(found)
    except ValueError:
        raise ValueError(f"{source.path}: {source.key} is {shown(found)}, not a number") from None


def _of_json(source: OutcomeSource, text: str) -> Any:
    """Return the value of a key; a key with dots may also name a value inside of others."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source.path}: not JSON: {error}") from None
    if isinstance(tree, dict) and source.key in tree:
        return tree[source.key]
    for part in source.key.split("."):
        if not isinstance(tree, dict) or part not in tree:
            there = list(tree) if isinstance(tree, dict) else ()
            raise ValueError(f"{source.path}: no key {source.key!r}; there is {_list(there)}")
        tree = tree[part]
    return tree


def _of_csv(source: OutcomeSource, text: str) -> str:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except csv.Error as error:
        raise ValueError(f"{source.path}: not CSV: {error}") from None
    columns = [name.strip() for name in rows[0]] if rows else []
    if source.key not in columns:
        raise ValueError(f"{source.path}: no column {source.key!r}; there is {_list(columns)}")
    if len(rows) == 1:
        raise ValueError(f"{source.path}: no row below the names of its columns")
    index = columns.index(source.key)
    return rows[-1][index] if index < len(rows[-1]) else ""


def _of_wandb(key: str, file: Path) -> float:
    try:
        return float(read_regular(file).split()[-1])
    except FileNotFoundError:
        raise ValueError(
            f"the script gave no number as {key!r} to wandb.log; does it need a flag for that, as CleanRL's --track?"
        ) from None


def _list(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "") if names else "nothing"
