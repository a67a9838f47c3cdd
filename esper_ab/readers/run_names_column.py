"""Tables with a column of runs' names, which tell group and seed: W&B's exports. Pure."""

from __future__ import annotations

from dataclasses import replace

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.cells import cell_text
from esper_ab.formats.source_table import Cells, SourceTable
from esper_ab.readers.run_names import RunName, read_names, show_names
from esper_ab.readers.run_patterns import infer_names


def with_run_names(table: SourceTable, pattern: str) -> tuple[SourceTable, tuple[str, ...]]:
    """Return the table with the columns of groups and seeds that its runs' names tell, and the lines that show them.

    `pattern`: as the user gave it; "": it is found.
    """
    texts = [cell_text(cell) for cell in table.columns[table.roles["run"]]]
    runs = list(dict.fromkeys(texts))
    if len(runs) < 2:
        raise UsageError(f"{table.file} has one run; a comparison needs several of two groups")
    if pattern:
        names = read_names(runs, pattern)
    else:
        pattern, names = infer_names(runs, str(table.file), seeds=True, groups=True)
    by_run = dict(zip(runs, names, strict=True))
    row_names = [by_run[text] for text in texts]
    return with_names(table, row_names), show_names(pattern, names)


def with_names(table: SourceTable, names: list[RunName]) -> SourceTable:
    """Return the table with columns for what `names` [rows] tell, unless a column tells it already."""
    columns: dict[str, Cells] = dict(table.columns)
    roles = dict(table.roles)
    for key in ("group", "seed", "run", "task"):
        if key in roles or not any(getattr(name, key) for name in names):
            continue
        column = key if key not in columns else f"{key} of the run"
        columns[column] = [getattr(name, key) for name in names]
        roles[key] = column
    return replace(table, columns=columns, roles=roles)
