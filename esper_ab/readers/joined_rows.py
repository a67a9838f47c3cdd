"""Several tables that have groups, seeds or items in columns become one; what these do not tell comes from the paths.

Columns get our names, except for the outcome and for columns that are called like items, whose names say what they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import listed
from esper_ab.formats.cells import cell_text, outcome_of
from esper_ab.formats.column_names import PAIR_COLUMNS, meaning
from esper_ab.formats.source_table import SourceTable, logged_numbers
from esper_ab.readers.evaluation_files import grouped_by_model, name_models
from esper_ab.readers.long_table import LongTable, roles_of
from esper_ab.readers.metrics import metric_of
from esper_ab.readers.named_runs import name_their_runs, names_of_runs
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.run_names import RunName, show_names
from esper_ab.readers.run_patterns import names_of_paths
from esper_ab.readers.step_rows import item_columns, one_row_per_run, step_column_of
from esper_ab.verdict.observations import names_items

IN_ROWS = ("group", "seed", "run", "task", "item", "repeat", "cluster", "order")
_OUTCOME = "outcome"  # if it is called differently in different files


@dataclass(frozen=True)
class NamedTable:
    """A table of a run, or of several, with the path that names it."""

    path: str
    table: SourceTable


@dataclass(frozen=True)
class _TableOfRun:
    """A table with what is known about its columns."""

    table: SourceTable
    roles: Mapping[str, str]  # our name -> the table's
    name: RunName  # by the path
    metric: str  # the column with the outcome


def join_rows(
    source: str, named_tables: Sequence[NamedTable], rules: ReadingRules, notes: tuple[str, ...]
) -> LongTable:
    """Join the tables. Raises UsageError if they are invalid or do not belong together."""
    paths = [named_table.path for named_table in named_tables]
    tables = [named_table.table for named_table in named_tables]
    of_models = all(map(name_models, tables)) and not rules.runs
    reading: tuple[str, ...] = ()
    if of_models:
        tables, reading = grouped_by_model(tables)
    roles = [roles_of(table, rules.names) for table in tables]
    _check_same_columns(tables, roles)
    with_groups = all("group" in table_roles for table_roles in roles)
    with_seeds = all({*table_roles} & {*PAIR_COLUMNS, "run"} for table_roles in roles)
    name_by_path = {path: RunName() for path in paths}
    name_lines: tuple[str, ...] = ()
    if not with_groups and name_their_runs(tables):
        pattern, names = names_of_runs(source, paths, tables, roles, rules)
        name_by_path = dict(zip(paths, names, strict=True))
        name_lines = show_names(pattern, names)
    elif rules.runs or not (with_groups and (with_seeds or of_models)):
        readings, names = names_of_paths(
            source, list(name_by_path), rules.runs, seeds=not with_seeds, groups=not with_groups
        )
        name_by_path = dict(zip(name_by_path, names, strict=True))
        name_lines = show_names(readings, names)
    metrics, metric_lines = _metrics(source, tables, rules.names.get("outcome", roles[0].get("outcome", "")))
    parts = [
        _TableOfRun(table, table_roles, name_by_path[path], metric)
        for table, table_roles, path, metric in zip(tables, roles, paths, metrics, strict=True)
    ]
    metric = _OUTCOME
    if len({*metrics}) == 1:
        metric = metrics[0]
    joined = _joined(source, parts, metric)
    our_names = {our_column: our_column for our_column in joined.columns if our_column in IN_ROWS} | {"outcome": metric}
    reduced_table = one_row_per_run(joined, our_names, rules.steps)
    return LongTable(
        source=source,
        columns={name: list(cells) for name, cells in reduced_table.table.columns.items()},
        row_numbers=reduced_table.table.row_numbers,
        metric=metric,
        reading=(*reading, *metric_lines, *reduced_table.reading),
        notes=tuple(dict.fromkeys((*notes, *(note for table in tables for note in table.notes), *reduced_table.notes))),
        name_lines=name_lines,
    )


def _metrics(source: str, tables: Sequence[SourceTable], named_metric: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the outcome of each table, and a sentence if tasks have different ones, as formats of benchmarks say."""
    metric = metric_of(source, tables, named_metric)
    metrics = []
    for table in tables:
        has_metric = named_metric or metric in table.columns
        if table.outcomes and not has_metric:
            metrics.append(table.outcomes[0])
        else:
            metrics.append(metric)
    if len({*metrics}) == 1:
        return metrics, ()
    words_by_task = {}
    for table, chosen_metric in zip(tables, metrics, strict=True):
        for task in dict.fromkeys(map(cell_text, table.column("task") or [str(table.file)])):
            words_by_task[task] = f'"{chosen_metric}" of {task}'
    return metrics, (f"The outcome is {visible_line(listed(list(words_by_task.values())), 200)}.",)


def _check_same_columns(tables: Sequence[SourceTable], roles: Sequence[Mapping[str, str]]) -> None:
    """Raise UsageError if a column that tells what a row is, such as its task, is not in every table."""
    names = [dict(table_names) for table_names in roles]
    for table, table_names in zip(tables, names, strict=True):
        table_names |= {name: name for name in item_columns(table, table_names)}
    words = dict.fromkeys(
        our_name
        for table_names in names
        for our_name in table_names
        if our_name in IN_ROWS or our_name == table_names[our_name]
    )
    for our_name in words:
        tables_with = [place for place, table_names in enumerate(names) if our_name in table_names]
        if 0 < len(tables_with) < len(tables) and our_name != "outcome":
            table_without = next(place for place in range(len(tables)) if place not in tables_with)
            name = names[tables_with[0]][our_name]
            raise UsageError(
                f"{tables[tables_with[0]].file} has a column {name!r} and {tables[table_without].file} has none, so "
                "their rows cannot be put into one table"
            )


def _joined(source: str, parts: Sequence[_TableOfRun], metric: str) -> SourceTable:
    """Return the rows of all tables, with empty cells where a table lacks a column."""
    columns: dict[str, list[Any]] = {}
    rows = 0
    for part in parts:
        for our_name, cells in _cells(part, metric).items():
            columns.setdefault(our_name, [""] * rows).extend(cells)
        rows += len(part.table.row_numbers)
        for cells in columns.values():
            cells += [""] * (rows - len(cells))
    return SourceTable(Path(source), "several files", columns, range(1, rows + 1))


def _cells(part: _TableOfRun, metric: str) -> dict[str, list[Any]]:
    """Return the cells of a table by our names; what no column tells comes from its name."""
    table = part.table
    roles = part.roles
    count = len(table.row_numbers)
    cells: dict[str, list[Any]] = {}
    for our_name in IN_ROWS:
        if text := getattr(part.name, our_name, ""):
            cells[our_name] = [text] * count
    for our_name, their_name in roles.items():
        if name := _joined_name(our_name, their_name):
            cells[name] = list(table.columns[their_name])
    if "seed" in cells:
        cells.pop("run", None)
    elif "run" not in cells:  # one run of a group in each file
        cells["run"] = ["1"] * count
    if step := step_column_of(table, roles):
        cells["step"] = list(table.columns[step])
    for name in item_columns(table, roles):
        cells[name] = list(table.columns[name])
    if state := roles.get("state") or _state_column(table):
        cells["state"] = list(table.columns[state])
    cells[metric] = _values(part, with_steps="step" in cells)
    return cells


def _joined_name(our_name: str, their_name: str) -> str:
    """Return the name in the joined table of a column with a role; "" if it has none there."""
    if our_name in PAIR_COLUMNS:
        return "seed"
    if our_name == "item" and names_items(their_name):
        return their_name
    return our_name if our_name in IN_ROWS else ""


def _state_column(table: SourceTable) -> str:
    return next((name for name in table.columns if meaning(name) in ("state", "status")), "")


def _values(part: _TableOfRun, *, with_steps: bool) -> list[float | None]:
    """Return the outcomes in a table, None where there is none; those of a row per step may be NOT_FINITE."""
    table = part.table
    metric = part.metric
    if metric not in table.columns:
        return [None] * len(table.row_numbers)
    if with_steps:
        values: list[float | None] = logged_numbers(table, metric).tolist()
        for place, value in enumerate(values):
            if value is not None and math.isnan(value):
                values[place] = None
        return values
    place_words = f"{table.file}, row "
    return [
        outcome_of(cell, f"{place_words}{row}, column {metric}")
        for cell, row in zip(table.columns[metric], table.row_numbers, strict=True)
    ]
