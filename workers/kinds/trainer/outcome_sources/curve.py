"""A curve in a file of another tool, such as JSON lines, evaluations.npz, an event file: its last value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esper_ab.contracts.errors import UsageError
from workers.kinds.trainer.outcome_sources.left import Found, Left, shortened

if TYPE_CHECKING:
    from esper_ab.formats.source_table import SourceTable


def read(file: str, key: str, left: Left) -> Found:
    """Return the last value of `key`; of an evaluation with several episodes, their mean. ValueError if none."""
    from esper_ab.formats.source_table import series_of  # needs numpy, which most commands' runs do not

    try:
        for table in _tables(file, left):
            if key in table.columns:
                series = series_of(table, key)
                if len(series.values):
                    at = f"row {series.row_numbers[-1]}"
                    if "step" in table.roles:
                        at = f"step {series.steps[-1]:g}"
                    return Found(float(series.values[-1]), f"{file}, {key}, {at}", f"{file}:{key}")
                raise ValueError(f"{file}: {key} has no value")
        names = [name for table in _tables(file, left) for name in table.columns]
    except UsageError as error:
        raise ValueError(str(error).replace(f"{left.out}/", "")) from None
    raise ValueError(f"{file}: no {key!r}; available names: {shortened(names)}")


def has(file: str, key: str, left: Left) -> bool:
    """Whether the file has the curve; a file that cannot be read has not."""
    try:
        return any(key in table.columns for table in _tables(file, left))
    except (UsageError, ValueError):
        return False


def _tables(file: str, left: Left) -> list[SourceTable]:
    from esper_ab.formats.known import read_file  # needs numpy, as above

    try:
        return read_file(left.out / file)
    except FileNotFoundError:
        raise ValueError(f"the script left no {file} in {{out}}; it left {shortened(left.files())}") from None
    except OSError as error:
        raise ValueError(f"{file} in {{out}} cannot be read: {error.strerror or error}") from None
