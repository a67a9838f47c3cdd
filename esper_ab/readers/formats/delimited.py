"""CSV, with a header line: the columns tell what they are only by their names."""

from __future__ import annotations

from pathlib import Path

from esper_ab.readers.csv_file import NAME, read_table
from esper_ab.readers.formats import Format
from esper_ab.readers.source_table import SourceTable

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def _recognises(file: Path, head: bytes) -> bool:
    """True for text whose first line has a separator: one column alone is no table of outcomes."""
    if head.startswith(_UTF16_MARKS):
        return True
    first = head.lstrip().partition(b"\n")[0]
    return b"\x00" not in head and head.lstrip()[:1] not in (b"{", b"[") and any(c in first for c in b",;\t")


def _read(file: Path) -> list[SourceTable]:
    return [read_table(file)]


FORMAT = Format(NAME, _recognises, _read, general=True)
