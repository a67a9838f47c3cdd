"""Tables with a row per run and step: one row per run is made of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.cells import cell_text
from esper_ab.formats.column_names import PAIR_COLUMNS
from esper_ab.formats.source_table import NOT_FINITE, Cells, SourceTable, series_of
from esper_ab.readers.steps import RunValues, StepRule, outcomes_at, step_column
from esper_ab.verdict.observations import names_items

_IDENTITY = ("group", *PAIR_COLUMNS, "run", "task", "item")
_REPEATS = ("epoch", "epochs")  # of an item, if another column names items


@dataclass(frozen=True)
class _RunRows:
    """The rows of one run, or of one item of it."""

    group: str
    label: str  # for messages: "ppo, seed 3"
    places: list[int]  # of its rows in the table


@dataclass(frozen=True)
class Reduced:
    """A table with a row per run (and item)."""

    table: SourceTable
    reading: tuple[str, ...] = ()  # sentences on how outcomes were taken, for the user before the answer
    notes: tuple[str, ...] = ()


def one_row_per_run(table: SourceTable, roles: Mapping[str, str], rule: StepRule) -> Reduced:
    """Reduce a table with a row per step to one with a row per run (and item).

    `roles`: our name of a column -> the table's. The table is unchanged if it has no column of steps, or if no run has
    several rows.
    """
    step = step_column_of(table, roles)
    if rule.given and not step:
        setting = SettingName("mean_last")
        if rule.at is not None:
            setting = SettingName("at")
        raise UsageError(
            f"{table.file}: ",
            setting,
            f" needs a column of steps; its columns are {visible_line(', '.join(table.columns), 200)}",
        )
    if not step or not {"group", "outcome"} <= {*roles} or {*roles}.isdisjoint((*PAIR_COLUMNS, "run")):
        return Reduced(table)
    runs = _runs(table, roles)
    metric = roles["outcome"]
    if len(runs) == len(table.row_numbers) and not rule.given and NOT_FINITE not in table.columns[metric]:
        return Reduced(table)
    values = [
        RunValues(run.group, run.label, series_of(_part(table, run.places, metric, step), metric)) for run in runs
    ]
    step_outcomes = outcomes_at(values, rule, metric)
    last_places = [run.places[-1] for run in runs]
    columns: dict[str, Cells] = {name: [cells[place] for place in last_places] for name, cells in table.columns.items()}
    columns[metric] = step_outcomes.outcomes
    row_numbers = [table.row_numbers[place] for place in last_places]
    return Reduced(replace(table, columns=columns, row_numbers=row_numbers), (step_outcomes.how,), step_outcomes.notes)


def step_column_of(table: SourceTable, roles: Mapping[str, str]) -> str:
    """Return the column of steps, by its role or its name; "" if there is none.

    Epochs are repetitions of an item if another column names items.
    """
    if "step" in roles:
        return roles["step"]
    names = [name for name in table.columns if name not in roles.values()]
    step = step_column(names)
    if _is_repeat(step) and ("item" in roles or any(names_items(name) for name in table.columns)):
        return ""
    return step


def item_columns(table: SourceTable, roles: Mapping[str, str]) -> list[str]:
    """Return the columns without a role that are called like items, and their epochs; [] if there is a step."""
    if step_column_of(table, roles):
        return []
    other_columns = [name for name in table.columns if name not in roles.values()]
    items = [name for name in other_columns if names_items(name)]
    if items or "item" in roles:
        items += [name for name in other_columns if _is_repeat(name)]
    return items


def _is_repeat(name: str) -> bool:
    return name.strip().lower() in _REPEATS


def _runs(table: SourceTable, roles: Mapping[str, str]) -> list[_RunRows]:
    """Return the rows of each run, in the order of the file."""
    named_columns = [
        (our_name, table.columns[their_name]) for our_name, their_name in roles.items() if our_name in _IDENTITY
    ]
    items = [name for name in table.columns if names_items(name) and name not in roles.values()]
    named_columns += [(name, table.columns[name]) for name in items if not step_column([name])]
    places_by_key: dict[tuple[str, ...], list[int]] = {}
    for place, cells in enumerate(zip(*(cells for _, cells in named_columns), strict=True)):
        places_by_key.setdefault(tuple(map(cell_text, cells)), []).append(place)
    runs = []
    for key, run_places in places_by_key.items():
        by_name = dict(zip((name for name, _ in named_columns), key, strict=True))
        group = by_name.pop("group")
        label = ", ".join((group, *(f"{name} {text}" for name, text in by_name.items())))
        runs.append(_RunRows(group, visible_line(label, 100), run_places))
    return runs


def _part(table: SourceTable, row_places: Sequence[int], metric: str, step: str) -> SourceTable:
    """Return the rows of one run, with its steps and values."""
    columns: dict[str, Cells] = {name: [table.columns[name][place] for place in row_places] for name in (metric, step)}
    row_numbers = [table.row_numbers[place] for place in row_places]
    return SourceTable(table.file, table.format, columns, row_numbers, roles={"step": step})
