"""`progress.csv` of Stable-Baselines3's logger: what one run logged, a row per dump.

Evaluations have rows of their own, so the last row most often has no evaluation.
"""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.csv_table import read_table
from esper_ab.formats.known import Format
from esper_ab.formats.known._curves import likeliest_first
from esper_ab.formats.source_table import SourceTable

_NAME = "an SB3 progress.csv"
_STEPS = "time/total_timesteps"


def _recognises(file: Path, head: bytes) -> bool:
    return _STEPS in head.partition(b"\n")[0].decode(errors="replace").strip().split(",")


def _read(file: Path) -> list[SourceTable]:
    table = read_table(file)
    if _STEPS not in table.columns:
        raise UsageError(f"{file}, {_NAME}: it has no column {_STEPS}")
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=table.columns,
            row_numbers=table.row_numbers,
            roles={"step": _STEPS},
            outcomes=likeliest_first(name for name in table.columns if not name.startswith("time/")),
            notes=table.notes,
        )
    ]


FORMAT = Format(_NAME, _recognises, _read, order=1)
