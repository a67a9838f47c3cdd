"""`run-ID.wandb`, which W&B keeps below wandb/ for each run, offline or not: its configuration, history and end.

A file is a log in blocks of 32 KiB, as LevelDB's: each record has one part or several, with checksum, length and type,
and is a protobuf `Record`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.formats.known import Format
from esper_ab.formats.known._curves import Curves, likeliest_first, scalars
from esper_ab.formats.known._json import decode
from esper_ab.formats.known._protobuf import BrokenMessage, fields, parts, real, signed, text
from esper_ab.formats.source_table import Cells, SourceTable

_NAME = "a W&B run file"
_START = b":W&B"
_START_BYTES = 7
_BLOCK_BYTES = 32 * 1024
_HEAD = struct.Struct("<IHB")  # checksum, length and type of a part
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MOST_BYTES = 512 * 2**20
# Numbers of fields.
_HISTORY, _RUN, _EXIT = 2, 17, 18  # of a Record
_ITEM, _KEY, _NESTED_KEY, _JSON = 1, 1, 2, 16
_BOOLEAN, _INTEGER, _NUMBER = 4, 5, 6  # of an item since version 0.30; before, every value was JSON
_RUN_ID, _CONFIG, _GROUP, _DISPLAY_NAME = 1, 4, 6, 8
_EXIT_CODE = 1
_STEP, _OWN = "_step", "_"  # names of W&B's own begin with _


@dataclass
class _Run:
    """What the records of a file say."""

    curves: Curves = field(default_factory=Curves)
    fixed: dict[str, float | str] = field(default_factory=dict)  # name, group, and the configuration
    exit_code: int | None = None
    logged: int = 0


def _recognises(file: Path, head: bytes) -> bool:
    return head.startswith(_START)


def _read(file: Path) -> list[SourceTable]:
    run = _Run()
    notes = []
    try:
        for record in _records(read_regular(file, _MOST_BYTES)):
            _add(run, record)
    except EOFError:
        notes.append(f"The last record of {file.name} is incomplete.")
    except (BrokenMessage, struct.error, UsageError) as error:
        raise UsageError(f"{file}, {_NAME}, is damaged: {error}") from None
    if not len(run.curves):
        raise UsageError(f"{file}, {_NAME}, has no numbers that were logged")
    if run.exit_code is None:
        notes.append(f"{file.name} has no end: the run crashed, or still goes on.")
    steps, columns = run.curves.columns(f"{file}, {_NAME}")
    state = "finished" if run.exit_code == 0 else "crashed"
    fixed_columns: dict[str, Cells] = {
        name: [value] * len(steps) for name, value in run.fixed.items() if name not in columns
    }
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns={_STEP: steps} | columns | fixed_columns | {"state": [state] * len(steps)},
            row_numbers=range(1, len(steps) + 1),
            roles={"step": _STEP, "state": "state"}
            | {role: role for role in ("run", "group", "seed") if role in fixed_columns},
            outcomes=likeliest_first(columns),
            notes=tuple(notes),
        )
    ]


def _records(content: bytes) -> Iterator[bytes]:
    """Yield the records. Raises BrokenMessage, and EOFError if the last one is incomplete."""
    begun_parts: list[bytes] = []
    offset = _START_BYTES
    while offset < len(content):
        bytes_left = _BLOCK_BYTES - offset % _BLOCK_BYTES
        if bytes_left < _HEAD.size:
            offset += bytes_left
            continue
        if offset + _HEAD.size > len(content):
            raise EOFError
        _, length, kind = _HEAD.unpack_from(content, offset)
        offset += _HEAD.size
        if kind == 0 and length == 0:  # room that was kept for more
            offset += bytes_left - _HEAD.size
            continue
        if kind not in (_FULL, _FIRST, _MIDDLE, _LAST) or length > bytes_left - _HEAD.size:
            raise BrokenMessage(f"no record at byte {offset - _HEAD.size}")
        if offset + length > len(content):
            raise EOFError
        begun_parts = (
            [*begun_parts, content[offset : offset + length]]
            if kind in (_MIDDLE, _LAST)
            else [content[offset : offset + length]]
        )
        offset += length
        if kind in (_FULL, _LAST):
            yield b"".join(begun_parts)


def _add(run: _Run, record: bytes) -> None:
    for number, _, value in fields(record):
        if not isinstance(value, bytes):
            continue
        if number == _HISTORY:
            _add_history(run, value)
        elif number == _RUN:
            _add_run(run, value)
        elif number == _EXIT:
            codes = [signed(code) for part, _, code in fields(value) if part == _EXIT_CODE]
            run.exit_code = codes[-1] if codes else 0


def _add_history(run: _Run, message: bytes) -> None:
    values: dict[str, Any] = {}
    for item in parts(message, _ITEM):
        name, value = _item(item)
        values[name] = value
    step = values.get(_STEP)
    if not isinstance(step, int | float) or isinstance(step, bool):
        step = run.logged
    run.logged += 1
    for name, value in scalars(values).items():
        if not name.startswith(_OWN) and isinstance(value, float | int):
            run.curves.add(float(step), name, value)


def _item(message: bytes) -> tuple[str, Any]:
    """Return the name and the value of an item of a history or a configuration."""
    names = []
    value: Any = None
    for number, _, part in fields(message):
        if number in (_KEY, _NESTED_KEY) and isinstance(part, bytes):
            names.append(part.decode(errors="replace"))
        elif number == _JSON and isinstance(part, bytes):
            value = decode("a value", part)
        elif number == _BOOLEAN:
            value = bool(part)
        elif number == _INTEGER:
            value = signed(part)
        elif number == _NUMBER:
            value = real(part)
    return ".".join(names), value


def _add_run(run: _Run, message: bytes) -> None:
    """Add the configuration, whose seed and group no path tells, because W&B names the folder."""
    config = dict(_item(item) for part in parts(message, _CONFIG) for item in parts(part, _ITEM))
    name_fields = {"run": text(message, _DISPLAY_NAME) or text(message, _RUN_ID), "group": text(message, _GROUP)}
    run.fixed |= {name: value for name, value in name_fields.items() if value}
    run.fixed |= {
        name: value
        for name, value in scalars(config).items()
        if not name.startswith(_OWN) and not (isinstance(value, float) and math.isnan(value))
    }


FORMAT = Format(_NAME, _recognises, _read, order=1)
