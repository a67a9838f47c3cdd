"""JSON lines in general: an object per line, as many trainers log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format
from esper_ab.formats.known._curves import scalars
from esper_ab.formats.known._json import decode, read_lines
from esper_ab.formats.known._records import columns_of
from esper_ab.formats.source_table import SourceTable

_NAME = "a file of JSON lines"


def _recognises(file: Path, head: bytes) -> bool:
    """The first line is an object, and another begins after it; a file with a single line is JSON."""
    first_line, _, text_left = head.lstrip().partition(b"\n")
    if not (first_line.startswith(b"{") and first_line.rstrip().endswith(b"}") and text_left.lstrip().startswith(b"{")):
        return False
    try:
        return isinstance(decode("", first_line), dict)
    except UsageError:
        return False


def _read(file: Path) -> list[SourceTable]:
    numbers = []

    def rows() -> Iterator[dict[str, float | str]]:
        for number, record in read_lines(file):
            numbers.append(number)
            yield scalars(record)

    columns = columns_of(f"{file}, {_NAME}", rows())
    if not columns:
        raise UsageError(f"{file}, {_NAME}: it has no numbers by name")
    return [SourceTable(file, _NAME, columns, numbers)]


FORMAT = Format(_NAME, _recognises, _read, general=True)
