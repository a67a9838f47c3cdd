"""The outcome of a command, from what its run left.

A name alone is searched in all files, then in the output; ValueError, of one line, names the files and their contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import NoReturn

from esper_ab.contracts.trainer import OutcomeSource, holds_outcome
from workers.kinds.trainer.outcome_sources import csv_column, curve, json_key, output_line, wandb_log
from workers.kinds.trainer.outcome_sources.left import Found, Left, shortened

_MOST_SEARCHED = 100  # files below {out} that are searched for the outcome's key
_EVENTS = "tfevents"  # in the name of an event file


def read_outcome(source: OutcomeSource, left: Left) -> float:
    """Return the number to which `source` refers; it need not be finite. True is 1, False 0."""
    return find_outcome(source, left).value


def has_outcome(source: OutcomeSource, left: Left) -> bool:
    """Whether `read_outcome` would return a number."""
    try:
        find_outcome(source, left)
    except ValueError:
        return False
    return True


def find_outcome(source: OutcomeSource, left: Left) -> Found:
    """Return the number to which `source` refers, and where it was."""
    key = source.key
    if source.tool == "wandb":
        return wandb_log.read(key, left)
    if source.tool == "stdout":
        return output_line.read(key, left)
    if source.tool == "tb":
        return _read_tag(key, left)
    if source.path:
        return _read(source.path, key, left)
    return _search(key, left)


def _read(file: str, key: str, left: Left) -> Found:
    if file.endswith(".csv"):
        return csv_column.read(file, key, left)
    if file.endswith(".json"):
        return json_key.read(file, key, left)
    outcome = curve.read(file, key, left)
    if not _is_events(file):
        return outcome
    return replace(outcome, source=f"tb:{key}")  # the name of the file has the time in it


def _has(file: str, key: str, left: Left) -> bool:
    if file.endswith(".csv"):
        return csv_column.has(file, key, left)
    if file.endswith(".json"):
        return json_key.has(file, key, left)
    return curve.has(file, key, left)


def _is_events(file: str) -> bool:
    return _EVENTS in PurePath(file).name


def _read_tag(tag: str, left: Left) -> Found:
    """Return the last value of a tag. A writer that begins anew continues in another file of the same folder."""
    files = [file for file in left.files() if _is_events(file)]
    if not files:
        raise ValueError(f"the script left no TensorBoard event file in {{out}}; it left {shortened(left.files())}")
    having = [file for file in files if curve.has(file, tag, left)]
    if not having:
        return curve.read(files[-1], tag, left)  # says which tags there are
    folders = sorted({str(Path(file).parent) for file in having})
    if len(folders) > 1:
        raise ValueError(f"event files in {shortened(folders)} all have {tag}; log the outcome under a tag of its own")
    return _read(having[-1], tag, left)


def _search(key: str, left: Left) -> Found:
    """Return the number of the only file that has `key`, else that of the output.

    Raises ValueError if there is none, or if several files have the key.
    """
    files = left.files()
    tables = [name for name in files if holds_outcome(name)]
    others = [name for name in files if _is_events(name) or name.endswith(".wandb")]
    having = list[str]()
    if len(tables) + len(others) <= _MOST_SEARCHED:
        having = [name for name in (*tables, *others) if _has(name, key, left)]
    if len(having) == 1:
        return _read(having[0], key, left)
    if having and all(map(_is_events, having)):
        return _read_tag(key, left)
    if having:
        _refuse_several(key, having)
    outcome = output_line.find(key, left)
    if outcome is not None:
        return outcome
    if len(tables) == 1 and not others:
        return _read(tables[0], key, left)  # says what the file has
    if not tables and len({PurePath(name).parent for name in others}) == 1:
        return _read(others[-1], key, left)
    _refuse_none(key, files, tables, searched=len(tables) <= _MOST_SEARCHED)


def _refuse_several(key: str, having: Sequence[str]) -> NoReturn:
    example = min(having, key=lambda name: not name.endswith(".json"))  # a JSON is likelier to hold a final number
    flag = f"tb:{key}" if _is_events(example) else f"{example}:{key}"
    raise ValueError(f"{shortened(having)} in {{out}} all have {key}; say which one counts, as in {flag}")


def _refuse_none(key: str, files: Sequence[str], tables: Sequence[str], *, searched: bool) -> NoReturn:
    if not tables:
        raise ValueError(f"the script left no .json or .csv file in {{out}}; it left {shortened(files)}")
    example = min(tables, key=lambda name: name.endswith(".csv"))
    none = ""
    if searched:
        none = f", of which none has {key}"
    raise ValueError(f"the script left {shortened(tables)} in {{out}}{none}; say which has it, as in {example}:NAME")
