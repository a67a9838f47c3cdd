"""Journals with a valid CRC chain in which one field of one event has an extreme value."""

from __future__ import annotations

import contextlib
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.commands import cli
from esper_ab.commands._exit_status import invoke
from esper_ab.contracts.errors import JournalError
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.line import FIRST_PREV
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME

Place = tuple[str | int, ...]  # of a value in the JSON of an event
_RAW = "a raw number: "  # a string that begins so is written without quotes, because Python has no such number
NUMBERS: tuple[Any, ...] = (
    -1,
    0,
    1,
    3,
    2**31,
    10**18,
    2**63 - 1,
    2**63,
    f"{_RAW}1e400",
    -1e308,
    -1e40,
    -0.5,
    5e-324,
    0.5,
    1e18,
    1e40,
    1e308,
)
TEXTS = ("", "'", "python 't.py {seed} {lr} {out}", "{}", "\N{RIGHT-TO-LEFT OVERRIDE}", "\0", "x" * 5_000)
OTHER_VALUES: tuple[Any, ...] = (None, True, False, [], {})
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status", "--json"),
    ("status",),
    ("report",),
    ("report", "--json"),
    ("export", "--format", "csv"),
    ("tidy", "--check"),
    ("query", "SELECT * FROM runs"),
)


def trees(events: Sequence[AnyEvent]) -> list[Any]:
    """Return the events as JSON values."""
    return [json.loads(msgspec.json.encode(event)) for event in events]


def places(tree: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every value in an event, except its kind; for a list, only the places in its first item."""
    if place:
        yield place
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree[:1] if isinstance(tree, list) else [])
    for key, item in items:
        if key != "kind":
            yield from places(item, (*place, key))


def values(value: Any) -> tuple[Any, ...]:
    """Return the extreme values that replace `value`."""
    if isinstance(value, str):
        return (*TEXTS, *OTHER_VALUES)
    return (*NUMBERS, *OTHER_VALUES) if not isinstance(value, list | dict) else OTHER_VALUES


def value_at(tree: Any, place: Place) -> Any:
    """Return the value at a place."""
    for key in place:
        tree = tree[key]
    return tree


def replaced(tree: Any, place: Place, value: Any) -> Any:
    """Return a copy of `tree` with another value at a place."""
    if not place:
        return value
    key, *later_keys = place
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[key] = replaced(tree[key], tuple(later_keys), value)
    return copy


def write_chain(folder: Path, event_trees: Sequence[Any]) -> Path:
    """Write the events to a journal with valid CRCs; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    prev_crc = FIRST_PREV
    lines = []
    for n, tree in enumerate(event_trees):
        event = json.dumps(tree).replace(f'"{_RAW}1e400"', "1e400")
        body = f'{{"n":{n},"prev":"{prev_crc}","t":"2026-01-01T00:00:00.000+00:00","event":{event}'.encode()
        prev_crc = f"{zlib.crc32(body):08x}"
        lines.append(body + f',"crc":"{prev_crc}"}}\n'.encode())
    (folder / JOURNAL_NAME).write_bytes(b"".join(lines))
    return folder


def is_accepted(folder: Path) -> bool:
    """Return whether the journal can be read; only the error for a damaged journal counts as no."""
    try:
        load(folder)
    except JournalError:
        return False
    return True


def command_problem(folder: Path, command: Sequence[str], export_folder: Path) -> str:
    """Run a command on a journal; return the problem with its exit status or output, or "" if there is none."""
    options = ("--out", str(export_folder)) if command[0] == "export" else ()
    output = io.StringIO()
    errors = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = invoke(cli.group, [command[0], str(folder), *command[1:], *options], "esper-ab")
    except Exception as error:  # noqa: BLE001  a traceback for the user
        return f"{type(error).__name__}: {error}"
    message = errors.getvalue().strip()
    if status not in (0, JournalError.exit_code):
        return f"exit status {status}: {message}"
    return f"more than a line: {message}" if status and message.count("\n") else ""
