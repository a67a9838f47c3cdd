"""Rows of one item and run that no column tells apart: repeats, or the same rows pasted again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from esper_ab.contracts.wording import counted
from esper_ab.readers.item_layout import ItemLayout
from esper_ab.stats.floats import Ints, distinct
from esper_ab.verdict.item_table import ItemTable


def repeat_notes(
    columns: Mapping[str, Sequence[object]],
    used: Mapping[str, str],
    layout: ItemLayout,
    table: ItemTable,
    row_numbers: Sequence[int],
) -> tuple[str, ...]:
    """Return a note if runs have several rows of an item that no column tells apart, such as an epoch; else nothing."""
    if not layout.item or "repeat" in used:
        return ()
    cell = ((table.group * len(table.runs) + table.run) * len(table.tasks) + table.task) * len(table.items) + table.item
    if distinct(cell) == cell.size:
        return ()
    _, first, of_row, rows = np.unique(cell, return_index=True, return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(rows[of_row] > 1)
    if _told_apart(columns, {*used.values(), layout.item, layout.cluster}, of_row, repeated):
        return ()
    later = repeated[repeated != first[of_row[repeated]]]
    earliest = int(later[0])
    example = f"row {row_numbers[earliest]} that of row {row_numbers[int(first[of_row[earliest]])]}"
    unit = table.unit
    have = "has" if later.size == 1 else "have"
    return (
        f"{counted(later.size, 'row')} {have} the {unit} of an earlier row of the same run ({example}), and no column "
        f"numbers repeats: the outcomes of a {unit} are averaged; remove the rows if they are copies.",
    )


def _told_apart(columns: Mapping[str, Sequence[object]], used: set[str], cell: Ints, rows: Ints) -> bool:
    """True if a column that is not `used` has different values in all `rows` of a cell."""
    places = rows.tolist()
    of_cell = cell[rows].tolist()
    for name, values in columns.items():
        if name not in used and len(set(zip(of_cell, (str(values[at]) for at in places), strict=True))) == len(places):
            return True
    return False
