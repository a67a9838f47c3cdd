"""Several files become one table: files of a run each, which their paths name, or tables with the runs in columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from esper_ab.contracts.errors import OpenQuestion, SettingName, Unanswered, UsageError
from esper_ab.contracts.wording import counted, did_you_mean, listed
from esper_ab.formats.column_names import PAIR_COLUMNS
from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import Series, SourceTable, series_of
from esper_ab.readers.evaluation_files import folders_of_tasks
from esper_ab.readers.joined_rows import NamedTable, join_rows
from esper_ab.readers.long_table import LongTable, columns_of_runs, roles_of
from esper_ab.readers.metrics import metric_of
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.run_names import RunName, label_of, show_names
from esper_ab.readers.run_patterns import names_of_paths
from esper_ab.readers.source_files import SourceFile
from esper_ab.readers.step_rows import item_columns
from esper_ab.readers.steps import RunValues, outcomes_at, step_column
from esper_ab.verdict.observations import unit_of

# Files that a library always calls so: the folder names the run, and several are parts of it.
_PART_OF_RUN = re.compile(r"events\.out\.tfevents\..*|(?:.*\.)?monitor\.csv")
_TRAINING_EPISODES = 100  # as of monitor.csv


@dataclass(frozen=True)
class _RunTables:
    """The tables of one run."""

    path: str  # which names it
    tables: tuple[SourceTable, ...]


def join_tables(paths: Sequence[Path], files: Sequence[SourceFile], rules: ReadingRules) -> LongTable:
    """Return one table of all files.

    Raises UsageError if they are invalid or do not belong together, and Unanswered if the user must say what rows are.
    """
    source = _source(paths, files)
    names = rules.names
    used_files, notes = _outcome_files(files, names.get("outcome", ""))
    runs = _runs(used_files)
    tables = [table for run in runs for table in run.tables]
    _check_named_columns(tables, names)
    roles = roles_of(tables[0], names)
    identified = {"group", "run", "item", *PAIR_COLUMNS} & {*roles}
    if identified or (used_files[0][0].format.general and _are_items(source, tables[0], roles, rules)):
        return join_rows(source, [NamedTable(run.path, table) for run in runs for table in run.tables], rules, notes)
    metric = metric_of(source, tables, names.get("outcome", ""))
    by_path = [run.path for run in runs]
    if rules.runs.endswith("/..."):  # reaches from a folder to the file
        by_path = [str(run.tables[0].file) for run in runs]
    used_pattern, run_names = names_of_paths(source, by_path, rules.runs, seeds=True, groups=True)
    _check_different(runs, run_names)
    values = [
        RunValues(name.group, label_of(name), _series(run, metric), run.tables[0].window, run.tables[0].row)
        for run, name in zip(runs, run_names, strict=True)
    ]
    step_outcomes = outcomes_at(values, rules.steps, metric)
    first_table = tables[0]
    better = ""
    if metric in first_table.outcomes[:1]:
        better = first_table.better
    notes_of_tables = dict.fromkeys(note for table in tables for note in table.notes)
    return LongTable(
        source=source,
        columns=columns_of_runs(run_names, metric, step_outcomes.outcomes),
        row_numbers=range(1, len(runs) + 1),
        metric=metric,
        reading=(step_outcomes.how,),
        notes=(*notes, *step_outcomes.notes, *notes_of_tables),
        name_lines=show_names(used_pattern, run_names),
        better=better,
    )


def _check_named_columns(tables: Sequence[SourceTable], names: Mapping[str, str]) -> None:
    """Raise UsageError if the user named a column that no table has."""
    their_names = dict.fromkeys(name for table in tables for name in table.columns)
    for named_column in names.values():
        if named_column not in their_names:
            raise UsageError(f"no file has a column {named_column!r}; {did_you_mean(named_column, their_names)}")


def _are_items(source: str, table: SourceTable, roles: Mapping[str, str], rules: ReadingRules) -> bool:
    """True if the rows of a run's table are items: a column is called like them, and no step is asked for.

    Raises Unanswered for episodes, which may be those of the training or of an evaluation after it.
    """
    names = item_columns(table, roles)
    if not names or rules.steps.given or rules.rows == "runs":
        return False
    if rules.rows is None and all(unit_of(name) == "episode" for name in names):
        raise Unanswered(
            source,
            [
                OpenQuestion(
                    f"each file has a row per episode (column {names[0]}): an evaluation of the finished run, or its "
                    "training, of which the last episodes count",
                    (SettingName("rows", "items"), SettingName("mean_last", _TRAINING_EPISODES)),
                )
            ],
        )
    return True


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
    files_read = _read_files(files, metric)
    files_with_metric = [
        (file, tables) for file, tables in files_read if not metric or any(metric in table.columns for table in tables)
    ]
    if not files_with_metric:
        names = dict.fromkeys(name for _, tables in files_read for table in tables for name in table.columns)
        raise UsageError(f"no file has a column {metric!r}; {did_you_mean(metric, names)}")
    ranks = {
        file.format.name: (file.format.general, file.format.order, file.format.name) for file, _ in files_with_metric
    }
    best_format = min(ranks, key=lambda name: ranks[name])
    used_files = [(file, tables) for file, tables in files_with_metric if file.format.name == best_format]
    kept_paths = {file.path for file, _ in used_files}
    other_files = [file for file in files if file.path not in kept_paths]
    if not other_files:
        return used_files, ()
    formats = listed(sorted({file.format.name for file in other_files}))
    format_words = best_format.removeprefix("an ").removeprefix("a ").removesuffix(" file")
    verb = "are"
    if len(other_files) == 1:
        verb = "is"
    other_words = f"{counted(len(other_files), 'other file')} ({formats}) {verb} not used"
    return used_files, (f"The outcomes are those of {format_words} files; {other_words}.",)


def _read_files(files: Sequence[SourceFile], metric: str) -> list[tuple[SourceFile, list[SourceTable]]]:
    """Return the files that may have the outcomes, with their tables.

    What lies beside files that a library wrote for its runs is read only if these lack the outcome that the user named.
    """
    general_files = [file for file in files if file.format.general]
    files_read = [(file, _read(file, files)) for file in files if not file.format.general]
    has_metric = any(metric in table.columns for _, tables in files_read for table in tables)
    if files_read and (has_metric or not metric):
        return files_read
    return files_read + [(file, _read(file, files)) for file in general_files]


def _read(file: SourceFile, files: Sequence[SourceFile]) -> list[SourceTable]:
    """Return the tables in a file. If it was found beside other files, an error says how to leave it out."""
    try:
        return read_file(file.path)
    except UsageError as error:
        if not file.in_folder or len(files) == 1:
            raise
        raise UsageError(
            *error.args,
            "; if it has no outcomes, put a dot before its name, or name the files that have some in place of the "
            "folder",
        ) from None


def _runs(files: Sequence[tuple[SourceFile, list[SourceTable]]]) -> list[_RunTables]:
    """Return the tables of each run, by the path that names it."""
    by_path: dict[str, list[SourceTable]] = {}
    of_one_checkpoint = folders_of_tasks([table for _, tables in files for table in tables])
    for file, tables in files:
        path = file.path
        if _PART_OF_RUN.fullmatch(path.name) or path.parent in of_one_checkpoint:
            path = path.parent
        by_path.setdefault(str(path), []).extend(tables)
    return [_RunTables(path, tuple(tables)) for path, tables in by_path.items()]


def _check_different(runs: Sequence[_RunTables], names: Sequence[RunName]) -> None:
    """Raise UsageError if two files have the same name of a run."""
    seen_runs: dict[RunName, str] = {}
    for run, name in zip(runs, names, strict=True):
        first_path = seen_runs.setdefault(name, run.path)
        if first_path != run.path and (name.seed or name.run):
            raise UsageError(
                f"{first_path} and {run.path} are both {label_of(name)}; ", SettingName("runs"), " can tell them apart"
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
