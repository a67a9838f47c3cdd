"""Read outcomes of runs done elsewhere: one row per run, from a CSV file or from columns of cells.

A row gives the run's group, its pair (for example a random seed) or just a name, its outcome and, if there are several,
its task and cluster. A run without an outcome is lost: it was planned and failed. Every error names the row and the
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.formats.column_names import PAIR_COLUMNS, meaning
from esper_ab.readers.cell_columns import CellColumns
from esper_ab.readers.group_columns import check_groups
from esper_ab.readers.item_layout import ItemLayout, item_layout, many_rows_per_run
from esper_ab.readers.item_repeats import repeat_notes
from esper_ab.readers.item_rows import item_table
from esper_ab.readers.name_cells import locate, read_name
from esper_ab.readers.replicate_names import one_name_per_replicate
from esper_ab.readers.run_rows import run_rows
from esper_ab.readers.run_states import without_crashed, without_crashed_items
from esper_ab.readers.table_columns import choose_columns
from esper_ab.readers.wide_table import long_of
from esper_ab.stats.floats import distinct
from esper_ab.verdict.names import Names
from esper_ab.verdict.observations import Observations, names_items
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import MEAN


def observations_of(
    source: str,
    columns: Mapping[str, Sequence[object]],
    row_numbers: Sequence[int],
    names: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
    rows: str | None = None,
) -> Observations:
    """Check the cells of `columns` (values by column name) and make observations from them.

    `row_numbers`: the number of each row, for messages. `names`: our column name -> the source's, where the two differ.
    `groups`: the columns that have the outcomes of one group each, if each row is a seed and not a run. `rows`: what a
    row is, "runs" or "items"; None: the columns tell. Rows of items become a `table`, of which `at_level` makes rows.
    """
    if groups:
        meanings = {meaning(name) for name in columns} | set(names or ())
        by_row = meanings.isdisjoint((*PAIR_COLUMNS, "run", "item")) and not any(map(names_items, columns))
        _refuse_rows_of_runs(source, columns, groups)
        columns, row_numbers = long_of(source, columns, row_numbers, groups, by_row=by_row)
    used_columns = choose_columns(source, columns, names or {}, rows)
    if not row_numbers:
        raise UsageError(
            f"{source} has no rows: it needs one row per run, with the columns group, seed (or pair or run) and "
            "outcome, and also task and cluster if there are several tasks or clusters"
        )
    cells = CellColumns(columns)
    layout = item_layout(source, cells, used_columns, rows, item_is_named="item" in (names or {}))
    if layout is not None:
        return _observe_items(source, cells, row_numbers, used_columns, layout)
    return _observe_runs(source, cells, row_numbers, used_columns, rows, grouped="group" in (names or {}))


def _observe_items(
    source: str,
    columns: CellColumns,
    row_numbers: Sequence[int],
    used_names: Mapping[str, str],
    layout: ItemLayout,
) -> Observations:
    """Make observations from rows of items."""

    def place_of(index: int, column: str) -> str:
        return locate(source, row_numbers[index], {"item": layout.item, **used_names}, column)

    def read(cell: object, column: str, index: int) -> str:
        name = read_name(cell, column, lambda: place_of(index, column))
        if column == "task" and name == MEAN:
            raise UsageError(f"{place_of(index, column)}: the name {MEAN!r} is reserved")
        return name

    table = item_table(columns, used_names, layout, read, place_of)
    used_columns = {*used_names.values(), layout.item, layout.cluster}
    table, crashed = without_crashed_items(source, columns, used_columns, table, row_numbers)
    pair_column = ""
    if layout.run in PAIR_COLUMNS:
        pair_column = layout.run
    run_column = ""
    if layout.run:
        run_column = used_names[layout.run]
    return Observations(
        source=source,
        pair_column=pair_column,
        rows=Runs.of(()),
        outcome_column=used_names["outcome"],
        run_column=run_column,
        notes=(*repeat_notes(columns, used_names, layout, table, row_numbers), *crashed),
        table=table,
    )


def _observe_runs(
    source: str,
    columns: CellColumns,
    row_numbers: Sequence[int],
    used_columns: Mapping[str, str],
    row_kind: str | None,
    *,
    grouped: bool,
) -> Observations:
    """Make observations from rows of runs."""
    pair_column = next((column for column in PAIR_COLUMNS if column in used_columns), "")
    runs = run_rows(source, columns, used_columns, pair_column or "run", row_numbers)
    if grouped:
        check_groups(source, used_columns["group"], runs.group)
    runs, crash_notes = without_crashed(source, columns, used_columns.values(), runs)
    notes: tuple[str, ...] = ()
    if row_kind == "runs" and many_rows_per_run(
        columns, used_columns
    ):  # the user says that each of them is a run of its own
        numbers = Names.of(map(str, runs.row.tolist()))
        runs = replace(runs, replicate=numbers, run=numbers)
        pair_column = ""
    elif "run" in used_columns:
        _check_unique(source, runs, runs.run, used_columns["run"])
    if pair_column:
        replicates, notes = one_name_per_replicate(runs.replicate, pair_column)
        runs = replace(runs, replicate=replicates)
        _check_unique(source, runs, runs.replicate, used_columns[pair_column])
    return Observations(
        source=source,
        pair_column=pair_column,
        rows=runs,
        outcome_column=used_columns["outcome"],
        notes=(*notes, *crash_notes),
        run_column=used_columns.get(pair_column or "run", ""),
    )


def _refuse_rows_of_runs(source: str, columns: Iterable[str], groups: Sequence[str]) -> None:
    """Raise UsageError if, beside the columns of groups, one tells the group or the outcome of a single run."""
    for name in columns:
        our_name = meaning(name)
        if name in groups or our_name not in ("group", "outcome"):
            continue
        means = "" if name == our_name else f" ({our_name})"
        raise UsageError(
            SettingName("groups"),
            f": {source} has a column {name!r}{means}, so each row is one run already; leave out ",
            SettingName("groups"),
            f", or remove {name}",
        )


def _check_unique(source: str, runs: Runs, names: Names, column: str) -> None:
    """Raise UsageError if two rows of one group and task have the same name; `names`: the name of each row."""
    cell_codes = runs.group.codes * len(runs.task.names) + runs.task.codes
    keys = cell_codes * len(names.names) + names.codes
    if distinct(keys) == keys.size:
        return
    _, first_row, code = np.unique(keys, return_index=True, return_inverse=True)
    row = int(np.flatnonzero(first_row[code] != np.arange(keys.size))[0])
    task = runs.task[row]
    task_words = f" and task {task}" if task else ""
    raise UsageError(
        f"{source}, row {runs.row[row]}, column {column}: group {runs.group[row]} also has {column} "
        f"{names[row]}{task_words} in row {runs.row[first_row[code[row]]]}; one row per run"
    )
