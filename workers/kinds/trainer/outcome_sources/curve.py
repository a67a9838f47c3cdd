"""A curve in a file of another tool, such as JSON lines, evaluations.npz, an event file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from esper_ab.contracts.errors import UsageError
from workers.kinds.trainer.outcome_sources.left import Left, shortened
from workers.kinds.trainer.outcome_sources.values import Values

if TYPE_CHECKING:
    from esper_ab.formats.source_table import Series, SourceTable


def read(file: str, key: str, left_output: Left) -> Values:
    """Return the values of `key`; of an evaluation with several episodes, their mean. ValueError if there is none."""
    from esper_ab.formats.source_table import series_of  # needs numpy, which most commands' runs do not

    try:
        tables = _tables(file, left_output)
        table = next((table for table in tables if key in table.columns), None)
        if table is not None:
            return _values(file, series_of(table, key), has_steps="step" in table.roles)
    except UsageError as error:
        raise ValueError(str(error).replace(f"{left_output.out}/", "")) from None
    names = [name for table in tables for name in table.columns]
    raise ValueError(f"{file}: no {key!r}; available names: {shortened(names)}")


def _values(file: str, series: Series, *, has_steps: bool) -> Values:
    from esper_ab.formats.source_table import NOT_FINITE  # needs numpy, as above

    key = series.name
    if not len(series.values):
        raise ValueError(f"{file}: {key} has no value")

    def where(place: int) -> str:
        if has_steps:
            return f"{file}, {key}, step {series.steps[place]:g}"
        return f"{file}, {key}, row {series.row_numbers[place]}"

    def at(place: int) -> float:
        value = float(series.values[place])
        return math.nan if value == NOT_FINITE else value

    return Values(len(series.values), at, where, f"{file}:{key}")


def has(file: str, key: str, left_output: Left) -> bool:
    """Whether the file has the curve; a file that cannot be read has not."""
    try:
        return any(key in table.columns for table in _tables(file, left_output))
    except (UsageError, ValueError):
        return False


def _tables(file: str, left_output: Left) -> list[SourceTable]:
    from esper_ab.formats.known import read_file  # needs numpy, as above

    try:
        return read_file(left_output.out / file)
    except FileNotFoundError:
        raise ValueError(f"the script left no {file} in {{out}}; it left {shortened(left_output.files())}") from None
    except OSError as error:
        raise ValueError(f"{file} in {{out}} cannot be read: {error.strerror or error}") from None
