"""Read rows of items: columns of cells become columns of numbers, without a Python object per row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.cells import cell_text, outcome_of
from esper_ab.readers.cell_columns import CellColumns, outcomes
from esper_ab.readers.item_layout import ItemLayout
from esper_ab.readers.name_cells import blank_if_missing
from esper_ab.stats.floats import Floats, Ints
from esper_ab.verdict.item_table import ItemTable
from esper_ab.verdict.names import Names
from esper_ab.verdict.observations import replicate_key

Where = Callable[[int, str], str]  # the beginning of a message about a row and one of our columns
ReadName = Callable[[object, str, int], str]  # the name in a cell, from our column and the row


def item_table(
    columns: CellColumns, used_columns: Mapping[str, str], layout: ItemLayout, read_name: ReadName, place_of: Where
) -> ItemTable:
    """Return the rows of items. `read_name` and `place_of` are for messages. Raises UsageError for an invalid cell."""

    def names_of(column: str) -> Names:
        if column not in used_columns:
            return Names.same("", rows)
        return columns.distinct(used_columns[column]).names(lambda cell, row: read_name(cell, column, row))

    rows = len(columns[used_columns["outcome"]])
    group = names_of("group")
    task = names_of("task")
    score = outcomes(columns, used_columns["outcome"], lambda cell, row: outcome_of(cell, place_of(row, "outcome")))
    run = _one_name_per_run(names_of(layout.run))
    item = _items(columns, layout, score, place_of)
    cluster, clusters = _clusters(columns, used_columns.get("cluster", layout.cluster), rows)
    return ItemTable(
        unit=layout.unit,
        item_column=layout.item,
        groups=group.names,
        tasks=task.names,
        runs=run.names,
        items=item.names,
        clusters=clusters,
        group=group.codes,
        task=task.codes,
        run=run.codes,
        item=item.codes,
        cluster=cluster,
        score=score,
    )


def _one_name_per_run(runs: Names) -> Names:
    """Return the runs with one spelling of each if a run has several: 7, 07 and 7.0 are one seed."""
    keys = {replicate_key(name) for name in runs.names}
    return runs if len(keys) == len(runs.names) else runs.renamed(replicate_key)


def _items(columns: CellColumns, layout: ItemLayout, score: Floats, place_of: Where) -> Names:
    """Return the items of the rows. A row without an item is that of a lost run, if it has no score either."""
    if not layout.item:
        return Names(np.arange(score.size), tuple(map(str, range(score.size))))
    cells = columns.distinct(layout.item)
    items = cells.plain_names() or cells.names(lambda cell, _: cell_text(cell))
    if "" in items.names:
        unnamed_rows = np.flatnonzero(items.among([""]) & np.isfinite(score))
        if unnamed_rows.size:
            raise UsageError(f"{place_of(int(unnamed_rows[0]), 'item')}: empty, but every score needs an item")
    return items


def _clusters(columns: CellColumns, column: str, rows: int) -> tuple[Ints, tuple[str, ...]]:
    """Return the clusters of the rows; -1 for a row that is in none."""
    if not column:
        return np.full(rows, -1), ()
    clusters = columns.distinct(column).names(lambda cell, _: blank_if_missing(cell_text(cell)))
    codes = clusters.codes
    if "" in clusters.names:
        empty_code = clusters.code_of[""]
        codes = np.where(codes == empty_code, -1, np.where(codes > empty_code, codes - 1, codes))
    return codes, tuple(name for name in clusters.names if name)
