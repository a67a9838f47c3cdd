"""Which of several numbers of a run is its outcome: the one that the user named, or the only one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import did_you_mean
from esper_ab.formats.cells import outcome_of
from esper_ab.formats.column_names import COLUMNS, meaning
from esper_ab.formats.source_table import Cells, SourceTable
from esper_ab.readers.steps import step_column
from esper_ab.verdict.observations import names_items

_LOOKED_AT = 1000  # cells of a column
_MOST_LISTED = 30
_OUTCOMES = ("return", "reward", "success", "score", "accuracy")
_EVALUATION = ("eval", "test", "valid")
_TIMES = frozenset({"time", "wall time", "wall_time", "timestamp", "relative time (process)", "relative time (wall)"})
_STATES = frozenset({"state", "status", "name", "id", "", "unnamed: 0", "_runtime", "_timestamp"})


def pick_metric(source: str, metrics: Sequence[str], named_metric: str) -> str:
    """Return the metric that is the outcome. Raises UsageError, which lists all, if the user must say which."""
    if named_metric:
        if named_metric not in metrics:
            raise UsageError(f"{source} has no {named_metric!r}; {did_you_mean(named_metric, metrics)}")
        return named_metric
    if len(metrics) == 1:
        return metrics[0]
    listed_names = ", ".join(visible_line(name, 60) for name in metrics[:_MOST_LISTED])
    rest_words = f", and {len(metrics) - _MOST_LISTED} more" if len(metrics) > _MOST_LISTED else ""
    if not metrics:
        raise UsageError(f"{source} has no column of numbers that could be the outcome")
    raise UsageError(
        f"{source} has {len(metrics)} numbers per run; say which is the outcome with ",
        SettingName("columns", {"outcome": "NAME"}),
        f": {listed_names}{rest_words}",
    )


def metric_of(source: str, tables: Sequence[SourceTable], named_metric: str) -> str:
    """Return the outcome of runs that have a table each: the format's own, or the only number that all have."""
    first_table = tables[0]
    if named_metric:
        all_names = dict.fromkeys(name for table in tables for name in table.columns)
        return pick_metric(source, list(all_names), named_metric)
    if first_table.outcomes and (first_table.better or len(first_table.outcomes) == 1):
        return first_table.outcomes[0]
    likely_names = first_table.outcomes or candidates(first_table.columns, [*first_table.roles.values()])
    shared_names = [name for name in likely_names if all(name in table.columns for table in tables)]
    return pick_metric(source, fitting(shared_names or likely_names), "")


def fitting(names: Sequence[str]) -> list[str]:
    """Return the only name that says that it is an outcome, measured in an evaluation or at all; else all names."""
    outcomes = [name for name in names if any(word in name.lower() for word in _OUTCOMES)]
    for chosen_names in ([name for name in outcomes if any(word in name.lower() for word in _EVALUATION)], outcomes):
        if len(chosen_names) == 1:
            return chosen_names
    return list(names)


def candidates(columns: Mapping[str, Cells], used_columns: Collection[str] = ()) -> list[str]:
    """Return the columns of numbers that can be the outcome, except `used_columns`."""
    taken_names = {*used_columns}
    steps = {name for name in columns if step_column([name])}
    return [
        name
        for name, cells in columns.items()
        if name not in taken_names | steps
        and meaning(name) not in {*COLUMNS} - {"outcome"}
        and name.strip().lower().rpartition("/")[2] not in _TIMES | _STATES
        and not names_items(name)
        and are_numbers(cells)
    ]


def are_numbers(cells: Cells) -> bool:
    """True if the first cells of a column are numbers or empty, and some are numbers."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
        return True
    try:
        return any([outcome_of(cell, "") is not None for cell in islice(cells, _LOOKED_AT)])
    except UsageError:
        return False
