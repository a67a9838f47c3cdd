"""Tables with a column per run and a row per step, as W&B exports the curves of a chart. Pure.

W&B calls a column "RUN - METRIC" and adds two columns with the least and the greatest value between two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.column_names import PAIR_COLUMNS, meaning
from esper_ab.formats.source_table import SourceTable, series_of
from esper_ab.readers.long_table import LongTable, columns_of_runs
from esper_ab.readers.metrics import are_numbers, pick_metric
from esper_ab.readers.run_names import RunName, label_of, read_names, show_names
from esper_ab.readers.run_patterns import infer_names
from esper_ab.readers.steps import RunValues, StepRule, outcomes_at, step_column

_BETWEEN = " - "
_ENDS = ("__MIN", "__MAX")
_LEAST_COLUMNS = 4  # two runs of two groups


@dataclass(frozen=True)
class RunColumns:
    """The columns with the values of one run each."""

    names: tuple[str, ...]  # of the columns
    runs: tuple[str, ...]  # the names of their runs
    metric: str  # "" if the columns do not tell
    step: str  # the column of steps; "" if there is none


def run_columns(table: SourceTable, metric: str) -> RunColumns | None:
    """Return the columns that have a run each; None if the table is not of this kind.

    `metric`: as the user named it; "": the only one. Raises UsageError if there are several.
    """
    names = [name for name in table.columns if not name.endswith(_ENDS)]
    step = step_column([name for name in names if _BETWEEN not in name])
    curves = [name for name in names if _BETWEEN in name]
    if curves and len(curves) >= len(names) - 2:  # beside a column of steps and one of times
        split = {name: name.rpartition(_BETWEEN)[::2] for name in curves}
        metrics = {metric_name: None for _, metric_name in split.values() if not step_column([metric_name])}
        chosen_metric = pick_metric(str(table.file), list(metrics), metric)
        columns = [name for name in curves if split[name][1] == chosen_metric]
        return RunColumns(tuple(columns), tuple(split[name][0] for name in columns), chosen_metric, step)
    meanings = {meaning(name) for name in table.columns}
    if meanings & {"group", "outcome", "run", *PAIR_COLUMNS} or metric:
        return None
    columns = [name for name in names if name != step and are_numbers(table.columns[name])]
    if len(columns) < max(_LEAST_COLUMNS, len(names) - 1):
        return None
    try:
        infer_names(columns, str(table.file), seeds=True, groups=True)
    except UsageError:
        return None
    return RunColumns(tuple(columns), tuple(columns), "", step)


def name_runs(table: SourceTable, runs: Sequence[str], pattern: str) -> tuple[str, list[RunName]]:
    """Return the pattern of the runs' names, `pattern` if the user gave one, and what each name says."""
    if len(runs) < 2:
        raise UsageError(
            f"{table.file} has one run, {visible_line(runs[0], 60)}; a comparison needs several of two groups; ",
            SettingName("groups"),
            " names columns of groups",
        )
    if pattern:
        return pattern, read_names(runs, pattern)
    return infer_names(runs, str(table.file), seeds=True, groups=True)


def long_of_columns(table: SourceTable, columns: RunColumns, pattern: str, rule: StepRule) -> LongTable:
    """Return a table with a row per run from one with a column per run."""
    used_pattern, names = name_runs(table, columns.runs, pattern)
    roles = {"step": columns.step} if columns.step else {}
    table_with_steps = replace(table, roles=roles)
    runs = [
        RunValues(name.group, label_of(name), series_of(table_with_steps, column))
        for name, column in zip(names, columns.names, strict=True)
    ]
    metric = columns.metric or "outcome"
    step_outcomes = outcomes_at(runs, rule, metric)
    return LongTable(
        source=str(table.file),
        columns=columns_of_runs(names, metric, step_outcomes.outcomes),
        row_numbers=range(1, len(names) + 1),
        metric=metric,
        reading=(step_outcomes.how,),
        notes=(*table.notes, *step_outcomes.notes),
        name_lines=show_names(used_pattern, names),
    )
