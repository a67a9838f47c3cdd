"""Values that one run logged under names, at steps, become the columns of a table. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.source_table import NOT_FINITE, Cells

_MOST_CELLS = 50_000_000  # 400 MB
_EVALUATION = ("eval", "test", "valid")
_OUTCOMES = ("return", "reward", "success", "score", "accuracy", "acc")


class Curves:
    """Values by name; a row per step, or several if a name occurs again at the same step."""

    def __init__(self) -> None:
        self._steps: list[float] = []  # of the rows
        self._current: set[str] = set()  # names with a value in the last row
        self._rows: dict[str, list[int]] = {}
        self._values: dict[str, list[float]] = {}

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._steps)

    def add(self, step: float, name: str, value: float) -> None:
        """Add a value."""
        if not self._steps or self._steps[-1] != step or name in self._current:
            self._steps.append(step)
            self._current.clear()
        self._current.add(name)
        self._rows.setdefault(name, []).append(len(self._steps) - 1)
        if not math.isfinite(value):
            value = NOT_FINITE
        self._values.setdefault(name, []).append(value)

    def forget_from(self, step: float) -> None:
        """Drop what was logged at `step` or later, because the run went on from there again."""
        if not any(known_step >= step for known_step in self._steps):
            return
        kept_curves = Curves()
        points = [
            (row, name, value)
            for name, rows in self._rows.items()
            for row, value in zip(rows, self._values[name], strict=True)
        ]
        for row, name, value in sorted(points, key=lambda point: point[0]):
            if self._steps[row] < step:
                kept_curves.add(self._steps[row], name, value)
        self.__dict__.update(kept_curves.__dict__)

    def columns(self, origin: str) -> tuple[np.ndarray, dict[str, Cells]]:
        """Return the steps [rows], and by name the values [rows], NaN where there is none; `origin` is for errors."""
        if len(self._steps) * len(self._values) > _MOST_CELLS:
            raise UsageError(f"{origin}: {len(self._values)} names at {len(self._steps)} steps are too many to read")
        columns: dict[str, Cells] = {}
        for name, values in self._values.items():
            column = np.full(len(self._steps), math.nan)
            column[self._rows[name]] = values
            columns[name] = column
        return np.asarray(self._steps, np.float64), columns


def likeliest_first(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of logged values, those that are most often an outcome first: eval/return, rollout/reward, loss."""

    def unlikely(name: str) -> tuple[bool, bool]:
        lower_name = name.lower()
        return not any(word in lower_name for word in _OUTCOMES), not any(word in lower_name for word in _EVALUATION)

    return tuple(sorted(names, key=unlikely))


def scalars(record: Mapping[str, object], prefix: str = "") -> dict[str, float | str]:
    """Return the numbers and texts of nested mappings, by names such as eval.return; True is 1."""
    flat_scalars: dict[str, float | str] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat_scalars |= scalars(value, f"{prefix}{name}.")
        elif isinstance(value, bool | int | float):
            flat_scalars[prefix + name] = float(value) if isinstance(value, bool) else value
        elif isinstance(value, str):
            flat_scalars[prefix + name] = value
    return flat_scalars
