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
    used_names: Mapping[str, str],
    layout: ItemLayout,
    table: ItemTable,
    row_numbers: Sequence[int],
) -> tuple[str, ...]:
    """Return a note if runs have several rows of an item that no column tells apart, such as an epoch; else nothing."""
    if not layout.item or "repeat" in used_names:
        return ()
    cell = ((table.group * len(table.runs) + table.run) * len(table.tasks) + table.task) * len(table.items) + table.item
    if distinct(cell) == cell.size:
        return ()
    _, first_rows, cell_of_row, rows = np.unique(cell, return_index=True, return_inverse=True, return_counts=True)
    repeated_rows = np.flatnonzero(rows[cell_of_row] > 1)
    if _told_apart(columns, {*used_names.values(), layout.item, layout.cluster}, cell_of_row, repeated_rows):
        return ()
    later_rows = repeated_rows[repeated_rows != first_rows[cell_of_row[repeated_rows]]]
    earliest_row = int(later_rows[0])
    example = f"row {row_numbers[earliest_row]} that of row {row_numbers[int(first_rows[cell_of_row[earliest_row]])]}"
    unit = table.unit
    verb = "has" if later_rows.size == 1 else "have"
    return (
        f"{counted(later_rows.size, 'row')} {verb} the {unit} of an earlier row of the same run ({example}), and no "
        f"column numbers repeats: the outcomes of a {unit} are averaged; remove the rows if they are copies.",
    )


def _told_apart(columns: Mapping[str, Sequence[object]], used_columns: set[str], cell: Ints, rows: Ints) -> bool:
    """True if a column that is not among `used_columns` has different values in all `rows` of a cell."""
    places = rows.tolist()
    of_cell = cell[rows].tolist()
    for name, values in columns.items():
        if name not in used_columns and len(
            set(zip(of_cell, (str(values[row]) for row in places), strict=True))
        ) == len(places):
            return True
    return False
