"""The one table that all files become: a row per run, or per item of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esper_ab.formats.column_names import COLUMNS, PAIR_COLUMNS, meaning
from esper_ab.formats.source_table import SourceTable
from esper_ab.readers.run_names import RunName


@dataclass(frozen=True, kw_only=True)
class LongTable:
    """Columns by our names, except for the outcome, which keeps its own."""

    source: str
    columns: Mapping[str, Sequence[Any]]
    row_numbers: Sequence[int]
    metric: str  # the name of the outcome's column
    reading: tuple[str, ...] = ()  # sentences on what was read, for the user before the answer
    notes: tuple[str, ...] = ()
    name_lines: tuple[str, ...] = ()  # lines for the user: how the names of runs were read
    better: str = ""  # "higher" or "lower", if the format fixes it


def roles_of(table: SourceTable, names: Mapping[str, str]) -> dict[str, str]:
    """Return our name -> the table's for the columns whose meaning their names, the format or the user tell."""
    roles = {meaning(name): name for name in table.columns if meaning(name) in COLUMNS}
    roles |= table.roles
    return roles | {
        meaning(our_name): their_name for our_name, their_name in names.items() if their_name in table.columns
    }


def of_format(table: SourceTable, roles: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return our name -> the table's for the columns that the format tells and the user did not name.

    A column of runs is left out if seeds tell the runs apart.
    """
    known_roles = {
        our_name: their_name
        for our_name, their_name in table.roles.items()
        if our_name in COLUMNS and our_name not in names
    }
    if not {*roles}.isdisjoint(PAIR_COLUMNS):
        known_roles.pop("run", None)
    return known_roles


def columns_of_runs(names: Sequence[RunName], metric: str, outcomes: Sequence[float | None]) -> dict[str, list[Any]]:
    """Return a table with a row per run from what their names say."""
    columns: dict[str, list[Any]] = {"group": [name.group for name in names]}
    if any(name.task for name in names):
        columns["task"] = [name.task for name in names]
    if all(name.seed for name in names):
        columns["seed"] = [name.seed for name in names]
    else:
        columns["run"] = [name.run or name.seed or f"run {place}" for place, name in enumerate(names, 1)]
    columns[metric] = list(outcomes)
    return columns
