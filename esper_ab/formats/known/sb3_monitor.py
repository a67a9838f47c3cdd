"""`monitor.csv` of Stable-Baselines3 and Gymnasium's older Monitor: a row per training episode of one run.

Its first line is "#" and a JSON object with the start time; the header r,l,t (return, length, seconds) follows.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.csv_text import lines_of
from esper_ab.formats.known import Format
from esper_ab.formats.source_table import Cells, SourceTable

_NAME = "an SB3 monitor.csv"
_NUMBERS = ("r", "l", "t")
_STEPS = "timesteps"  # made here, as SB3's own plots do: the sum of the lengths so far
_WINDOW = 100  # episodes, as in SB3's rollout/ep_rew_mean


def _recognises(file: Path, head: bytes) -> bool:
    first_line, _, text_left = head.partition(b"\n")
    return first_line.startswith(b"#{") and text_left.startswith(b"r,l,t")


def _read(file: Path) -> list[SourceTable]:
    try:
        header, rows = _rows(file)
    except csv.Error as error:
        raise UsageError(f"{file}, {_NAME}, is damaged: {error}") from None
    if tuple(header[: len(_NUMBERS)]) != _NUMBERS:
        raise UsageError(f"{file}, {_NAME}: its second line is not {','.join(_NUMBERS)}")
    notes: tuple[str, ...] = ()
    if rows and not _complete(rows[-1][1], header):
        rows.pop()
        notes = (f"The last row of {file.name} is incomplete and left out.",)
    for number, cells in rows:
        if not _complete(cells, header):
            raise UsageError(f"{file}, row {number}: expected {','.join(header)} with numbers r, l and t")
    columns: dict[str, Cells] = {name: [cells[place] for _, cells in rows] for place, name in enumerate(header)}
    columns |= {name: np.asarray(columns[name], np.float64) for name in _NUMBERS}
    columns[_STEPS] = np.cumsum(columns["l"])
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=columns,
            row_numbers=[number for number, _ in rows],
            roles={"step": _STEPS},
            outcomes=("r", *(name for name in header if name not in _NUMBERS), "l"),
            better="higher",
            window=_WINDOW,
            row="episode",
            notes=notes,
        )
    ]


def _rows(file: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header, and the rows with their numbers."""
    reader = csv.reader(lines_of(file))
    _, header = next(reader, []), next(reader, [])
    return header, [(reader.line_num, cells) for cells in reader if cells]


def _complete(cells: list[str], header: list[str]) -> bool:
    """True unless a crash cut the row."""
    if len(cells) != len(header):
        return False
    try:
        return all(math.isfinite(float(cell)) for cell in cells[: len(_NUMBERS)])
    except ValueError:
        return False


FORMAT = Format(_NAME, _recognises, _read, order=2)
