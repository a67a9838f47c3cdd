"""Read outcomes of runs done elsewhere: one row per run, from a CSV file or from columns of cells.

A row gives the run's group, its pair (for example a random seed) or just a name, its outcome and, if there are several,
its task and cluster. A run without an outcome is lost: it was planned and failed. Every error names the row and the
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.cells import LONGEST_NAME, NOTHING, cell_text, outcome_of
from esper_ab.formats.column_names import PAIR_COLUMNS, meaning
from esper_ab.readers.group_columns import check_groups
from esper_ab.readers.item_layout import ItemLayout, item_layout, many_rows_per_run
from esper_ab.readers.item_repeats import repeat_notes
from esper_ab.readers.item_rows import item_table
from esper_ab.readers.plain_rows import plain_rows
from esper_ab.readers.replicate_names import one_name_per_replicate
from esper_ab.readers.run_states import without_crashed, without_crashed_items
from esper_ab.readers.table_columns import choose_columns
from esper_ab.readers.wide_table import long_of
from esper_ab.verdict.observations import Observation, Observations, is_integer, names_items
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
    used = choose_columns(source, columns, names or {}, rows)
    if not row_numbers:
        raise UsageError(
            f"{source} has no rows: it needs one row per run, with the columns group, seed (or pair or run) and "
            "outcome, and also task and cluster if there are several tasks or clusters"
        )
    layout = item_layout(source, columns, used, rows, item_is_named="item" in (names or {}))
    if layout is not None:
        return _observe_items(source, columns, row_numbers, used, layout)
    return _observe_runs(source, columns, row_numbers, used, rows, grouped="group" in (names or {}))


def _observe_items(
    source: str,
    columns: Mapping[str, Sequence[object]],
    row_numbers: Sequence[int],
    used: Mapping[str, str],
    layout: ItemLayout,
) -> Observations:
    """Make observations from rows of items."""

    def where(index: int, column: str) -> str:
        return _locate(source, row_numbers[index], {"item": layout.item, **used}, column)

    def read(cell: object, column: str, index: int) -> str:
        name = _read_name(cell, column, where(index, column), required=True)
        if column == "task" and name == MEAN:
            raise UsageError(f"{where(index, column)}: the name {MEAN!r} is reserved")
        return name

    table = item_table(columns, used, layout, read, where)
    used_columns = {*used.values(), layout.item, layout.cluster}
    table, crashed = without_crashed_items(source, columns, used_columns, table, row_numbers)
    return Observations(
        source=source,
        pair_column=layout.run if layout.run in PAIR_COLUMNS else "",
        rows=(),
        outcome_column=used["outcome"],
        run_column=used[layout.run] if layout.run else "",
        notes=(*repeat_notes(columns, used, layout, table, row_numbers), *crashed),
        table=table,
    )


def _observe_runs(
    source: str,
    columns: Mapping[str, Sequence[object]],
    row_numbers: Sequence[int],
    used: Mapping[str, str],
    rows_are: str | None,
    *,
    grouped: bool,
) -> Observations:
    """Make observations from rows of runs."""
    pair_column = next((column for column in PAIR_COLUMNS if column in used), "")
    rows = plain_rows(columns, used, pair_column or "run", row_numbers, LONGEST_NAME)
    if rows is None:
        rows = []
        for index, number in enumerate(row_numbers):
            cells = {ours: columns[theirs][index] for ours, theirs in used.items()}
            rows.append(_read_row(source, used, cells, pair_column or "run", number))
    if grouped:
        check_groups(source, used["group"], rows)
    rows, crashed = without_crashed(source, columns, used.values(), rows)
    notes: tuple[str, ...] = ()
    if rows_are == "runs" and many_rows_per_run(columns, used):  # the user says that each of them is a run of its own
        rows = [msgspec.structs.replace(row, replicate=str(row.row), run=str(row.row)) for row in rows]
        pair_column = ""
    elif "run" in used:
        _check_unique(source, rows, [row.run for row in rows], used["run"])
    if pair_column:
        rows, notes = one_name_per_replicate(rows, pair_column)
        _check_unique(source, rows, [row.replicate for row in rows], used[pair_column])
    return Observations(
        source=source,
        pair_column=pair_column,
        rows=tuple(rows),
        outcome_column=used["outcome"],
        notes=(*notes, *crashed),
        run_column=used.get(pair_column or "run", ""),
    )


def _refuse_rows_of_runs(source: str, columns: Iterable[str], groups: Sequence[str]) -> None:
    """Raise UsageError if, beside the columns of groups, one tells the group or the outcome of a single run."""
    for name in columns:
        ours = meaning(name)
        if name in groups or ours not in ("group", "outcome"):
            continue
        means = "" if name == ours else f" ({ours})"
        raise UsageError(
            SettingName("groups"),
            f": {source} has a column {name!r}{means}, so each row is one run already; leave out ",
            SettingName("groups"),
            f", or remove {name}",
        )


def _read_row(
    source: str, used: Mapping[str, str], cells: Mapping[str, object], pair_column: str, row: int
) -> Observation:
    """Make an observation from the cells of a row, by our name of the column; raises UsageError for an invalid cell."""

    def read_name(column: str) -> str:
        return _read_name(cells.get(column, ""), column, _locate(source, row, used, column), required=column in used)

    task = read_name("task")
    if task == MEAN:
        raise UsageError(f"{_locate(source, row, used, 'task')}: the name {MEAN!r} is reserved")
    cluster = _blank_if_missing(read_name("cluster"))
    order = _blank_if_missing(read_name("order"))
    if order and not is_integer(order):
        raise UsageError(f"{_locate(source, row, used, 'order')}: {order!r} is not a whole number")
    return Observation(
        group=read_name("group"),
        replicate=read_name(pair_column),
        task=task,
        cluster=cluster,
        run=read_name("run"),
        value=outcome_of(cells["outcome"], _locate(source, row, used, "outcome")),
        row=row,
        order=int(order) if order else None,
    )


def _locate(source: str, row: int, used: Mapping[str, str], column: str) -> str:
    """Return the beginning of a message about a cell; the column has the source's name."""
    return f"{source}, row {row}, column {used.get(column, column)}"


def _read_name(cell: object, column: str, where: str, *, required: bool) -> str:
    """Return the name in a cell; raises UsageError if it is too long, not printable or, where needed, empty."""
    text = cell_text(cell)
    if not text and required and column not in ("cluster", "order"):
        raise UsageError(f"{where}: empty, but every run needs a value here")
    if len(text) > LONGEST_NAME or not text.isprintable():
        excerpt = visible_line(text, LONGEST_NAME)
        raise UsageError(f"{where}: {excerpt!r} is not a printable name of at most {LONGEST_NAME} characters")
    return text


def _blank_if_missing(text: str) -> str:
    """Return the text, or "" if it marks a missing value, such as "n/a"."""
    if text.lower() in NOTHING:
        return ""
    return text


def _check_unique(source: str, rows: Sequence[Observation], names: Sequence[str], column: str) -> None:
    """Raise UsageError if two rows of one group and task have the same name; `names`: the name of each row."""
    if len({(row.group, name, row.task) for row, name in zip(rows, names, strict=True)}) == len(rows):
        return
    seen: dict[tuple[str, str, str], int] = {}
    for row, name in zip(rows, names, strict=True):
        first = seen.setdefault((row.group, name, row.task), row.row)
        if first != row.row:
            of_task = f" and task {row.task}" if row.task else ""
            raise UsageError(
                f"{source}, row {row.row}, column {column}: group {row.group} also has {column} {name}{of_task} in row "
                f"{first}; one row per run"
            )
