"""The outcome of a command, from what its run left.

A name alone is searched in all files, then in the output; ValueError, of one line, names the files and their contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import NoReturn

from esper_ab.contracts.outcome_summary import LAST, Summary
from esper_ab.contracts.trainer import OutcomeSource, holds_outcome
from workers.kinds.trainer.outcome_sources import csv_column, curve, event_files, json_key, output_line, wandb_log
from workers.kinds.trainer.outcome_sources.event_files import is_event_file
from workers.kinds.trainer.outcome_sources.left import Found, Left, shortened
from workers.kinds.trainer.outcome_sources.values import Values

_MOST_SEARCHED = 100  # files below {out} that are searched for the outcome's key
_TOOLS = {
    "wandb": wandb_log.read,
    "wandb-offline": wandb_log.read_offline,
    "stdout": output_line.read,
    "tb": event_files.read,
}


def read_outcome(source: OutcomeSource, output: Left, summary: Summary = LAST) -> float:
    """Return the number to which `source` refers; it need not be finite. True is 1, False 0."""
    return find_outcome(source, output, summary).value


def has_outcome(source: OutcomeSource, output: Left, summary: Summary = LAST) -> bool:
    """Whether `read_outcome` would return a number."""
    try:
        find_outcome(source, output, summary)
    except ValueError:
        return False
    return True


def find_outcome(source: OutcomeSource, output: Left, summary: Summary = LAST) -> Found:
    """Return the number to which `source` refers, and where it was."""
    return _values(source, output).outcome(summary)


def _values(source: OutcomeSource, output: Left) -> Values:
    if source.tool:
        return _TOOLS[source.tool](source.key, output)
    if source.path:
        return _read(source.path, source.key, output)
    return _search(source.key, output)


def _read(file: str, key: str, output: Left) -> Values:
    if file.endswith(".csv"):
        return csv_column.read(file, key, output)
    if file.endswith(".json"):
        return json_key.read(file, key, output)
    if is_event_file(file):
        return event_files.read(key, output)
    if wandb_log.is_run_file(file):
        return wandb_log.read_offline(key, output)
    return curve.read(file, key, output)


def _has(file: str, key: str, output: Left) -> bool:
    if file.endswith(".csv"):
        return csv_column.has(file, key, output)
    if file.endswith(".json"):
        return json_key.has(file, key, output)
    return curve.has(file, key, output)


def _search(key: str, output: Left) -> Values:
    """Return the numbers of the only file that has `key`, else that of the output.

    Raises ValueError if there is none, or if several files have the key.
    """
    files = output.files()
    tables = [name for name in files if holds_outcome(name)]
    curve_files = [name for name in files if is_event_file(name) or wandb_log.is_run_file(name)]
    files_with_key = list[str]()
    if len(tables) + len(curve_files) <= _MOST_SEARCHED:
        files_with_key = [name for name in (*tables, *curve_files) if _has(name, key, output)]
    if len(files_with_key) == 1:
        return _read(files_with_key[0], key, output)
    if files_with_key and all(map(is_event_file, files_with_key)):
        return event_files.read(key, output)
    if files_with_key:
        _refuse_several(key, files_with_key)
    values = output_line.find(key, output)
    if values is not None:
        return values
    if len(tables) == 1 and not curve_files:
        return _read(tables[0], key, output)  # says what the file has
    if not tables and len({PurePath(name).parent for name in curve_files}) == 1:
        return _read(curve_files[-1], key, output)
    if not tables:
        files_left = f"the script left no .json or .csv file in {{out}}; it left {shortened(files)}"
        raise ValueError(f"{files_left}; {output_line.nothing_found(key, output)}")
    _refuse_none(key, tables, searched=len(tables) <= _MOST_SEARCHED)


def _refuse_several(key: str, files_with_key: Sequence[str]) -> NoReturn:
    example = min(
        files_with_key, key=lambda name: not name.endswith(".json")
    )  # a JSON is likelier to hold a final number
    flag = f"tb:{key}" if is_event_file(example) else f"{example}:{key}"
    raise ValueError(f"{shortened(files_with_key)} in {{out}} all have {key}; say which one counts, as in {flag}")


def _refuse_none(key: str, tables: Sequence[str], *, searched: bool) -> NoReturn:
    example = min(tables, key=lambda name: name.endswith(".csv"))
    none = ""
    if searched:
        none = f", of which none has {key}"
    raise ValueError(f"the script left {shortened(tables)} in {{out}}{none}; say which has it, as in {example}:NAME")
