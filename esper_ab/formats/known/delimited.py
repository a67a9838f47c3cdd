"""CSV, with a header line: the columns tell what they are only by their names."""

from __future__ import annotations

import csv
from itertools import islice
from pathlib import Path

from esper_ab.formats.csv_table import NAME, SEPARATORS, read_table
from esper_ab.formats.csv_text import encoding_of
from esper_ab.formats.known import Format
from esper_ab.formats.source_table import SourceTable

_SAMPLE_ROWS = 50


def _recognises(file: Path, head: bytes) -> bool:
    """True for text whose first line has several cells, and so has at least one of the next, if there are any."""
    text = head.decode(encoding_of(head), errors="replace")
    if "\x00" in text or text.lstrip()[:1] in ("{", "[", ""):
        return False
    for separator in SEPARATORS:
        try:
            rows = list(islice(csv.reader(text.splitlines(), delimiter=separator), _SAMPLE_ROWS))
        except csv.Error:
            continue
        header, *other_widths = [len(cells) for cells in rows if cells] or [0]
        if header > 1 and (header in other_widths or not other_widths):
            return True
    return False


def _read(file: Path) -> list[SourceTable]:
    return [read_table(file)]


FORMAT = Format(NAME, _recognises, _read, general=True)
