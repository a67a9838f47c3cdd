"""Scores without names of columns: arrays of runs, of runs x tasks or of runs x tasks x steps, by group.

This is how rliable takes them. A mapping of columns, which has a column such as group or outcome, is told from it by
these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.column_names import COLUMNS, meaning
from esper_ab.formats.source_table import Cells, SourceTable

GROUP, RUN, TASK, STEP, SCORE = "group", "run", "task", "step", "score"
_AXES = (RUN, TASK, STEP)  # of an array
_MOST_CELLS = 20_000_000
_UNPAIRED = "Runs are not paired: nothing says that run i of one group has the seed of run i of another."


def are_columns(names: Mapping[str, Any]) -> bool:
    """True if one of the names is known as that of a column."""
    return any(meaning(name) in COLUMNS for name in names)


def by_group(file: Path, format_name: str, scores: Mapping[str, np.ndarray]) -> SourceTable:
    """Return a row per score; `scores` are numbers, by group; "" for a group that the path tells.

    Raises UsageError if an array has no dimension, more than three, no score, or text.
    """
    origin = f"{file}, {format_name}"
    if not scores:
        raise UsageError(f"{origin}, is empty")
    for name, values in scores.items():
        array_words = f", array {name!r}" if name else ""
        if values.dtype.kind not in "fiub":
            raise UsageError(f"{origin}{array_words}: expected numbers, not {values.dtype}")
        if not 1 <= values.ndim <= len(_AXES) or not values.size:
            raise UsageError(
                f"{origin}{array_words}: expected an array [runs], [runs, tasks] or [runs, tasks, steps]; its shape "
                f"is {list(values.shape)}"
            )
    if sum(values.size for values in scores.values()) > _MOST_CELLS:
        raise UsageError(f"{origin}: more than {_MOST_CELLS} scores")
    axes = max(values.ndim for values in scores.values())
    columns: dict[str, Cells] = {}
    if set(scores) != {""}:
        columns[GROUP] = [name for name, values in scores.items() for _ in range(values.size)]
    for axis, role in enumerate(_AXES[:axes]):
        index_arrays = [np.indices(_padded(values, axes).shape)[axis].reshape(-1) for values in scores.values()]
        columns[role] = np.concatenate(index_arrays)
    columns[SCORE] = np.concatenate([values.reshape(-1).astype(np.float64) for values in scores.values()])
    return SourceTable(
        file=file,
        format=format_name,
        columns=columns,
        row_numbers=range(1, len(columns[SCORE]) + 1),
        roles={name: name for name in columns if name != SCORE},
        outcomes=(SCORE,),
        notes=(_UNPAIRED,),
    )


def _padded(values: np.ndarray, axes: int) -> np.ndarray:
    return values.reshape(values.shape + (1,) * (axes - values.ndim))
