"""Outcomes of runs done elsewhere, from files and folders together.

Paths become files, files become tables (`formats`), and tables one long table with a row per run. What a run is called
comes from columns, from the names of columns, or from those of files and folders, by one pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.wording import counted, listed
from esper_ab.formats.column_names import PAIR_COLUMNS
from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import SourceTable
from esper_ab.readers.external_table import observations_of
from esper_ab.readers.joined_tables import join_tables
from esper_ab.readers.long_table import LongTable, of_format, roles_of
from esper_ab.readers.metrics import candidates, fitting, pick_metric
from esper_ab.readers.plain_groups import plain_groups
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.run_columns import long_of_columns, run_columns
from esper_ab.readers.run_names_column import with_run_names
from esper_ab.readers.source_files import find_files
from esper_ab.readers.step_rows import one_row_per_run
from esper_ab.readers.steps import check_rule
from esper_ab.readers.table_columns import check_control
from esper_ab.verdict.observations import Observations, names_items


@dataclass(frozen=True)
class Outcomes:
    """What was read."""

    observations: Observations
    name_lines: tuple[str, ...] = ()  # lines for the user: how the names of runs were read
    better: str = ""  # "higher" or "lower", if the format fixes it


def read_outcomes(paths: Sequence[Path], reading_rules: ReadingRules) -> Outcomes:
    """Read all files and folders. Raises UsageError if they are invalid, and Unanswered if the user must say how."""
    check_rule(reading_rules.steps)
    files, notes = find_files(paths)
    if len(files) == 1 and len(paths) == 1:
        tables = read_file(files[0].path)
        if len(tables) == 1:
            return _noted(_read_single_table(tables[0], reading_rules, general=files[0].format.general), notes)
    else:
        tables = []
    if reading_rules.groups:
        raise UsageError(SettingName("groups"), f" is for one table, not for {counted(len(files), 'file')}")
    return _noted(_observed(join_tables(paths, files, reading_rules), reading_rules), notes)


def _read_single_table(table: SourceTable, reading_rules: ReadingRules, *, general: bool) -> Outcomes:
    """Read the only table: a row per run, per run and step, or per seed; or a column per run."""
    source = str(table.file)
    if (
        not reading_rules.groups
        and (columns_of_runs := run_columns(table, reading_rules.names.get("outcome", ""))) is not None
    ):
        return _observed(
            long_of_columns(table, columns_of_runs, reading_rules.runs, reading_rules.steps), reading_rules
        )
    roles = roles_of(table, reading_rules.names)
    name_lines: tuple[str, ...] = ()
    if "group" not in roles and "run" in table.roles:
        table, name_lines = with_run_names(table, reading_rules.runs)
        roles = roles_of(table, reading_rules.names)
    elif reading_rules.runs:
        raise UsageError(SettingName("runs"), f": {source} has its groups in a column, or it is one file of one run")
    if not general and "group" not in roles:
        raise UsageError(
            f"{source} is {table.format}, which has one run; name the files of all runs, or the folder that has them"
        )
    groups = reading_rules.groups
    notes = table.notes
    if not groups and {"group", "outcome"}.isdisjoint(roles) and (groups := plain_groups(table.columns)):
        notes += (f"Each of the columns {listed(groups)} is taken as a group, and each row as a seed (--groups).",)
    if groups:
        observations = observations_of(
            source, _lists(table), table.row_numbers, reading_rules.names, groups, reading_rules.rows
        )
        return Outcomes(_add_notes(observations, notes), name_lines)
    if reading_rules.control:
        check_control(source, table.columns, roles, reading_rules.control, reading_rules.rows)
    names = dict(reading_rules.names) | of_format(table, roles, reading_rules.names)
    names, outcome_lines = _add_outcome(table, roles, names)
    reduced_table = one_row_per_run(table, roles_of(table, names), reading_rules.steps)
    table = reduced_table.table
    observations = observations_of(source, _lists(table), table.row_numbers, names, rows=reading_rules.rows)
    observations = _add_reading(observations, reduced_table.reading or outcome_lines)
    return Outcomes(_add_notes(observations, (*notes, *reduced_table.notes)), name_lines)


def _add_outcome(
    table: SourceTable, roles: Mapping[str, str], names: dict[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return `names` with the outcome, and a sentence on it, if no name tells the outcome but one column fits."""
    names_rows = not {*roles}.isdisjoint((*PAIR_COLUMNS, "run", "item")) or any(map(names_items, table.columns))
    if "outcome" in names or "outcome" in roles or "group" not in roles or not names_rows:
        return names, ()
    likely_columns = fitting(table.outcomes or candidates(table.columns, [*roles.values()]))
    if not table.outcomes and len(likely_columns) != 1:
        return names, ()
    metric = pick_metric(str(table.file), likely_columns, "")
    return names | {"outcome": metric}, (f'The outcome is "{metric}".',)


def _lists(table: SourceTable) -> dict[str, list[Any]]:
    return {name: list(cells) for name, cells in table.columns.items()}


def _observed(table: LongTable, reading_rules: ReadingRules) -> Outcomes:
    """Make observations of a table whose columns have our names, except for the outcome."""
    other_columns = {
        our_name: their_name for our_name, their_name in reading_rules.names.items() if our_name in ("cluster", "order")
    }
    names = other_columns | {"outcome": table.metric}
    observations = observations_of(table.source, table.columns, table.row_numbers, names, rows=reading_rules.rows)
    observations = _add_reading(_add_notes(observations, table.notes), table.reading)
    return Outcomes(observations, table.name_lines, table.better)


def _add_reading(observations: Observations, reading: Sequence[str]) -> Observations:
    return msgspec.structs.replace(observations, reading=tuple(reading))


def _add_notes(observations: Observations, notes: Sequence[str]) -> Observations:
    if not notes:
        return observations
    return msgspec.structs.replace(observations, notes=(*notes, *observations.notes))


def _noted(outcomes: Outcomes, notes: tuple[str, ...]) -> Outcomes:
    return replace(outcomes, observations=_add_notes(outcomes.observations, notes))
