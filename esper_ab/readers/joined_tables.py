"""Several files become one table: files of a run each, which their paths name, or tables with the runs in columns."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.wording import counted, did_you_mean, listed
from esper_ab.formats.cells import cell_text, outcome_of
from esper_ab.formats.column_names import PAIR_COLUMNS, meaning
from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import Series, SourceTable, logged_numbers, series_of
from esper_ab.readers.long_table import LongTable, columns_of_runs, roles_of
from esper_ab.readers.metrics import metric_of
from esper_ab.readers.run_names import RunName, label_of, read_names, show_names
from esper_ab.readers.run_patterns import infer_names
from esper_ab.readers.source_files import SourceFile
from esper_ab.readers.step_rows import one_row_per_run
from esper_ab.readers.steps import RunValues, StepRule, outcomes_at, step_column

# Files that a library always calls so: the folder names the run, and several are parts of it.
_PART_OF_RUN = re.compile(r"events\.out\.tfevents\..*|(?:.*\.)?monitor\.csv")
_IN_ROWS = ("group", "seed", "run", "task", "item", "repeat", "cluster", "order")


@dataclass(frozen=True)
class _RunTables:
    """The tables of one run."""

    path: str  # which names it
    tables: tuple[SourceTable, ...]


def join_tables(
    paths: Sequence[Path], files: Sequence[SourceFile], names: Mapping[str, str], pattern: str, rule: StepRule
) -> LongTable:
    """Return one table of all files. Raises UsageError if they are invalid or do not belong together."""
    source = _source(paths, files)
    used, notes = _outcome_files(files, names.get("outcome", ""))
    runs = _runs(used)
    tables = [table for run in runs for table in run.tables]
    roles = roles_of(tables[0], names)
    if {"group", "run", "item", *PAIR_COLUMNS} & {*roles}:
        return _join_rows(source, runs, names, pattern, rule, notes)
    metric = metric_of(source, tables, names.get("outcome", ""))
    by_path = [run.path for run in runs]
    if pattern.endswith("/..."):  # reaches from a folder to the file
        by_path = [str(run.tables[0].file) for run in runs]
    used_pattern, of_runs = _named(source, by_path, pattern, seeds=True, groups=True)
    _check_different(runs, of_runs)
    values = [
        RunValues(name.group, label_of(name), _series(run, metric), run.tables[0].window, run.tables[0].row)
        for run, name in zip(runs, of_runs, strict=True)
    ]
    taken = outcomes_at(values, rule, metric)
    first = tables[0]
    return LongTable(
        source=source,
        columns=columns_of_runs(of_runs, metric, taken.outcomes),
        row_numbers=range(1, len(runs) + 1),
        metric=metric,
        reading=(taken.how,),
        notes=(*notes, *taken.notes, *dict.fromkeys(note for table in tables for note in table.notes)),
        name_lines=show_names(used_pattern, of_runs),
        better=first.better if metric in first.outcomes[:1] else "",
    )


def _source(paths: Sequence[Path], files: Sequence[SourceFile]) -> str:
    """Return what messages call all files together."""
    if len(paths) == 1:
        return str(paths[0])
    return f"{counted(len(files), 'file')} from {files[0].path} to {files[-1].path}"


def _outcome_files(
    files: Sequence[SourceFile], metric: str
) -> tuple[list[tuple[SourceFile, list[SourceTable]]], tuple[str, ...]]:
    """Return the files that have the outcomes, with their tables, and a note on the others.

    A run may leave several files, such as a log of training episodes beside its evaluations.
    """
    read = [(file, read_file(file.path)) for file in files]
    having = [(file, tables) for file, tables in read if not metric or any(metric in table.columns for table in tables)]
    if not having:
        names = dict.fromkeys(name for _, tables in read for table in tables for name in table.columns)
        raise UsageError(f"no file has a column {metric!r}; {did_you_mean(metric, names)}")
    ranks = {file.format.name: (file.format.general, file.format.order, file.format.name) for file, _ in having}
    best = min(ranks, key=lambda name: ranks[name])
    used = [(file, tables) for file, tables in having if file.format.name == best]
    kept = {file.path for file, _ in used}
    others = [file for file in files if file.path not in kept]
    if not others:
        return used, ()
    formats = listed(sorted({file.format.name for file in others}))
    return used, (
        f"The outcomes are those of {best.removeprefix('an ').removeprefix('a ')} files; "
        f"{counted(len(others), 'other file')} ({formats}) {'is' if len(others) == 1 else 'are'} not used.",
    )


def _runs(files: Sequence[tuple[SourceFile, list[SourceTable]]]) -> list[_RunTables]:
    """Return the tables of each run, by the path that names it."""
    by_path: dict[str, list[SourceTable]] = {}
    for file, tables in files:
        path = file.path.parent if _PART_OF_RUN.fullmatch(file.path.name) else file.path
        by_path.setdefault(str(path), []).extend(tables)
    return [_RunTables(path, tuple(tables)) for path, tables in by_path.items()]


def _named(source: str, paths: Sequence[str], pattern: str, *, seeds: bool, groups: bool) -> tuple[str, list[RunName]]:
    """Return the pattern of the paths, `pattern` if the user gave one, and what each path says."""
    if pattern:
        return pattern, read_names(paths, pattern)
    if len(paths) < 2:
        raise UsageError(f"{source} has one run, {paths[0]}; a comparison needs runs of two groups")
    return infer_names(paths, source, seeds=seeds, groups=groups)


def _check_different(runs: Sequence[_RunTables], names: Sequence[RunName]) -> None:
    """Raise UsageError if two files have the same name of a run."""
    seen: dict[RunName, str] = {}
    for run, name in zip(runs, names, strict=True):
        first = seen.setdefault(name, run.path)
        if first != run.path and (name.seed or name.run):
            raise UsageError(
                f"{first} and {run.path} are both {label_of(name)}; ", SettingName("runs"), " can tell them apart"
            )


def _series(run: _RunTables, metric: str) -> Series:
    """Return the values of a run over its steps; those of several files in the order of their steps."""
    parts = [series_of(_add_steps(table), metric) for table in run.tables if metric in table.columns]
    if not parts:
        return Series(metric, np.empty(0), np.empty(0), ())
    steps = np.concatenate([part.steps for part in parts])
    order = np.argsort(steps, kind="stable")
    values = np.concatenate([part.values for part in parts])[order]
    return Series(metric, steps[order], values, range(1, len(order) + 1))


def _add_steps(table: SourceTable) -> SourceTable:
    """Return the table with a column of steps by its name, if its format does not tell one."""
    if "step" in table.roles or not (step := step_column(list(table.columns))):
        return table
    return replace(table, roles={**table.roles, "step": step})


def _join_rows(
    source: str,
    runs: Sequence[_RunTables],
    names: Mapping[str, str],
    pattern: str,
    rule: StepRule,
    notes: tuple[str, ...],
) -> LongTable:
    """Join tables that have groups, seeds or items in columns; what these do not tell comes from the paths."""
    tables = [(run.path, table) for run in runs for table in run.tables]
    roles = [roles_of(table, names) for _, table in tables]
    _check_same_columns([table for _, table in tables], roles)
    with_groups = all("group" in of_table for of_table in roles)
    with_seeds = all({*of_table} & {*PAIR_COLUMNS, "run"} for of_table in roles)
    of_paths = [RunName()] * len(tables)
    name_lines: tuple[str, ...] = ()
    if pattern or not (with_groups and with_seeds):
        used, of_paths = _named(
            source, [path for path, _ in tables], pattern, seeds=not with_seeds, groups=not with_groups
        )
        name_lines = show_names(used, of_paths)
    metric = metric_of(source, [table for _, table in tables], names.get("outcome", roles[0].get("outcome", "")))
    columns: dict[str, list[Any]] = {}
    rows = 0
    for (_, table), of_table, name in zip(tables, roles, of_paths, strict=True):
        for ours, cells in _cells(table, of_table, name, metric).items():
            columns.setdefault(ours, [""] * rows).extend(cells)
        rows += len(table.row_numbers)
        for cells in columns.values():
            cells += [""] * (rows - len(cells))
        notes += table.notes
    joined = SourceTable(Path(source), "several files", columns, range(1, rows + 1))
    our_names = {ours: ours for ours in columns if ours in _IN_ROWS} | {"outcome": metric}
    reduced = one_row_per_run(joined, our_names, rule)
    return LongTable(
        source=source,
        columns={name: list(cells) for name, cells in reduced.table.columns.items()},
        row_numbers=reduced.table.row_numbers,
        metric=metric,
        reading=reduced.reading,
        notes=tuple(dict.fromkeys((*notes, *reduced.notes))),
        name_lines=name_lines,
    )


def _check_same_columns(tables: Sequence[SourceTable], roles: Sequence[Mapping[str, str]]) -> None:
    """Raise UsageError if a column that tells what a row is, such as its task, is not in every table."""
    for ours in _IN_ROWS:
        having = [place for place, of_table in enumerate(roles) if ours in of_table]
        if having and len(having) < len(tables):
            lacking = next(place for place in range(len(tables)) if place not in having)
            name = roles[having[0]][ours]
            raise UsageError(
                f"{tables[having[0]].file} has a column {name!r} and {tables[lacking].file} has none, so their rows "
                "cannot be put into one table"
            )


def _name_of(path: str, table: SourceTable) -> str:
    """Return the name of the run in a table: as its column says, or the path."""
    named = {cell_text(cell) for cell in table.columns.get(table.roles.get("run", ""), ())}
    return named.pop() if len(named) == 1 else path


def _cells(table: SourceTable, roles: Mapping[str, str], name: RunName, metric: str) -> dict[str, list[Any]]:
    """Return the cells of a table by our names; what no column tells comes from `name`."""
    count = len(table.row_numbers)
    cells: dict[str, list[Any]] = {}
    for ours in _IN_ROWS:
        if ours in roles:
            cells[ours] = list(table.columns[roles[ours]])
        elif text := getattr(name, ours, ""):
            cells[ours] = [text] * count
    for ours in PAIR_COLUMNS:
        if ours in roles:
            cells["seed"] = list(table.columns[roles[ours]])
    if "seed" in cells:
        cells.pop("run", None)
    elif "run" not in cells:  # one run of a group in each file
        cells["run"] = ["1"] * count
    if step := roles.get("step") or step_column(list(table.columns)):
        cells["step"] = list(table.columns[step])
    if state := roles.get("state") or next(
        (name for name in table.columns if meaning(name) in ("state", "status")), ""
    ):
        cells["state"] = list(table.columns[state])
    cells[metric] = _values(table, metric, with_steps="step" in cells)
    return cells


def _values(table: SourceTable, metric: str, *, with_steps: bool) -> list[float | None]:
    """Return the outcomes in a table, None where there is none; those of a row per step may be NOT_FINITE."""
    if metric not in table.columns:
        return [None] * len(table.row_numbers)
    if with_steps:
        numbers = logged_numbers(table, metric).tolist()
        return [None if math.isnan(number) else number for number in numbers]
    where = f"{table.file}, row "
    return [
        outcome_of(cell, f"{where}{row}, column {metric}")
        for cell, row in zip(table.columns[metric], table.row_numbers, strict=True)
    ]
