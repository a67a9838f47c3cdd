"""The file in which a command leaves its numbers: `result.json` in the run's folder, as `--higher NAME` reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from esper_ab.contracts.files_below import write_below

RESULT_FILE = "result.json"


def write_result(folder: Path, numbers: Mapping[str, float | Sequence[float]]) -> None:
    """Write numbers and curves by name; a reader sees either the earlier file or this one."""
    write_below(folder, RESULT_FILE, json.dumps(numbers).encode())
