"""Which columns of a table tell rows of items from rows of runs. Pure.

A row is one of an item if a column names items and a run has several rows, or if the user says so. What only the user
can know is asked: whether many rows with one name of a run, or with names that all groups share, are items or runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from esper_ab.contracts.errors import OpenQuestion, Unanswered
from esper_ab.contracts.wording import counted
from esper_ab.formats.column_names import PAIR_COLUMNS
from esper_ab.readers.cell_columns import CellColumns
from esper_ab.verdict.observations import names_items, unit_of
from esper_ab.verdict.row_questions import RUNS_OR_ITEMS

_MANY = 3  # rows per run, on average, from which rows of one run are hardly a slip
# Columns in which a table of one run's progress counts, so that they name no items.
_STEPS = frozenset({"step", "steps", "timestep", "timesteps", "global_step", "iteration", "epoch", "update", "frames"})


@dataclass(frozen=True, kw_only=True)
class ItemLayout:
    """The columns of rows of items."""

    item: str  # the source's name; "": each row is an item without a name
    unit: str  # the word for an item
    run: str  # our name of the column that names the runs of a group; "": each group is one run
    cluster: str = ""  # the source's name of a column whose names each have several items, such as a scene; "": none


def item_layout(
    source: str,
    columns: CellColumns,
    used_columns: Mapping[str, str],
    rows: str | None,
    *,
    item_is_named: bool,
) -> ItemLayout | None:
    """Return the columns of items; None if a row is a run.

    `used_columns`: our name of a column -> the source's. `rows`: "runs" or "items", as the user says. `item_is_named`:
    the user named the column of items. Raises Unanswered if the user must say.
    """
    if rows == "runs":
        return None
    run = _run_column(used_columns)
    distinct_runs, count = _runs(columns, used_columns, run)
    are_below_runs = rows == "items" or not run or distinct_runs < count
    if "item" in used_columns and (item_is_named or are_below_runs):
        return ItemLayout(item=used_columns["item"], unit=unit_of(used_columns["item"]), run=run)
    item_names = [name for name in columns if names_items(name) and name not in used_columns.values()]
    if item_names and are_below_runs:
        item = max(item_names, key=lambda name: len(columns.distinct(name).cells))
        cluster = "" if "cluster" in used_columns else _find_clusters(columns, item_names, item)
        return ItemLayout(item=item, unit=unit_of(item), run=run, cluster=cluster)
    if rows != "items":
        if many_rows_per_run(columns, used_columns):
            _ask(source, columns, used_columns, run, distinct_runs, count)
        return None
    if run and distinct_runs == count:  # the column that seems to name runs names items
        return ItemLayout(item=used_columns[run], unit=unit_of(used_columns[run]), run="")
    item = _telling(columns, used_columns, run)
    unit = "item"
    if item:
        unit = unit_of(item)
    return ItemLayout(item=item, unit=unit, run=run)


def many_rows_per_run(columns: CellColumns, used_columns: Mapping[str, str]) -> bool:
    """True if there are so many rows per name of a run that they are no slip."""
    distinct_runs, count = _runs(columns, used_columns, _run_column(used_columns))
    return _MANY * distinct_runs <= count


def _run_column(used_columns: Mapping[str, str]) -> str:
    return next((name for name in (*PAIR_COLUMNS, "run") if name in used_columns), "")


def _runs(columns: CellColumns, used_columns: Mapping[str, str], run: str) -> tuple[int, int]:
    """Return the number of runs of all groups and tasks, and the number of rows."""
    keys = _keys(used_columns, run)
    return columns.combinations(keys), len(columns[keys[0]])


def _keys(used_names: Mapping[str, str], run: str) -> list[str]:
    """Return the columns whose cells tell the runs apart."""
    return [used_names[name] for name in ("group", run, "task") if name in used_names]


def _find_clusters(columns: CellColumns, item_names: Sequence[str], item: str) -> str:
    """Return a column of `item_names` whose names each have several items, as a scene has episodes; "" if there is
    none.

    A column with several names per item numbers its repeats.
    """
    items = len(columns.distinct(item).cells)
    for name in item_names:
        if name != item and len(columns.distinct(name).cells) < columns.combinations([item, name]) == items:
            return name
    return ""


def _telling(columns: CellColumns, used_columns: Mapping[str, str], run: str) -> str:
    """Return a column of whole numbers that tells the rows of a run apart and is alike in all runs; "" if none does."""
    keys = _keys(used_columns, run)
    rows = len(columns[keys[0]])
    _, rows_of_runs = np.unique(columns.combined(keys), return_counts=True)
    for name in columns:
        if name in used_columns.values() or name.strip().lower() in _STEPS:
            continue
        cells = columns.distinct(name).cells
        tells_all = columns.combinations([*keys, name]) == rows
        if tells_all and np.all(rows_of_runs == len(cells)) and all(map(_is_whole, cells)):
            return name
    return ""


def _is_whole(cell: object) -> bool:
    text = str(cell).strip().removesuffix(".0")
    return text.isdecimal() and text.isascii()


def _ask(
    source: str,
    columns: CellColumns,
    used_columns: Mapping[str, str],
    run: str,
    distinct_runs: int,
    count: int,
) -> None:
    """Raise Unanswered: there are many rows per run, and no column is called like items."""
    if any(name.strip().lower() in _STEPS for name in columns):
        return
    telling = _telling(columns, used_columns, run)
    difference_words = f", which differ in the column {telling}" if telling else ""
    run_column = used_columns[run] if run else "group"
    raise Unanswered(
        source,
        [
            OpenQuestion(
                f"{count} rows name only {counted(distinct_runs, 'run')} ({run_column}){difference_words}; each row is "
                "an item, such "
                "as a question or an episode of that run, or a training run of its own",
                RUNS_OR_ITEMS,
            )
        ],
    )
