"""Read rows of items: columns of cells become columns of numbers, without a Python object per row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import LARGEST_OUTCOME
from esper_ab.formats.cells import NOTHING, cell_text, outcome_of
from esper_ab.readers.item_layout import ItemLayout
from esper_ab.stats.floats import Floats
from esper_ab.stats.item_scores import Ints
from esper_ab.verdict.item_table import ItemTable
from esper_ab.verdict.observations import replicate_key

Where = Callable[[int, str], str]  # the beginning of a message about a row and one of our columns
ReadName = Callable[[object, str, int], str]  # the name in a cell, from our column and the row


def item_table(
    columns: Mapping[str, Sequence[object]], used: Mapping[str, str], layout: ItemLayout, read: ReadName, where: Where
) -> ItemTable:
    """Return the rows of items. `read` and `where` are for messages. Raises UsageError for an invalid cell."""

    def names_of(column: str) -> tuple[Ints, tuple[str, ...]]:
        if column not in used:
            return np.zeros(rows, dtype=np.int64), ("",)
        return _named(columns[used[column]], lambda cell, row: read(cell, column, row))

    rows = len(columns[used["outcome"]])
    group, groups = names_of("group")
    task, tasks = names_of("task")
    score = _scores(columns[used["outcome"]], lambda row: where(row, "outcome"))
    run, runs = names_of(layout.run) if layout.run else (np.zeros(rows, dtype=np.int64), ("",))
    run, runs = _one_name_per_run(run, runs)
    item, items = _items(columns, layout, score, where)
    cluster, clusters = _clusters(columns, used.get("cluster", layout.cluster), rows)
    return ItemTable(
        unit=layout.unit,
        item_column=layout.item,
        groups=groups,
        tasks=tasks,
        runs=runs,
        items=items,
        clusters=clusters,
        group=group,
        task=task,
        run=run,
        item=item,
        cluster=cluster,
        score=score,
    )


def _coded(cells: Sequence[object]) -> tuple[Ints, list[object], list[int]]:
    """Number the distinct cells by their first rows; return the numbers [rows], the cells, and their first rows."""
    if isinstance(cells, np.ndarray):
        cells = cells.tolist()
    numbers: dict[object, int] = {}
    codes = np.fromiter((numbers.setdefault(cell, len(numbers)) for cell in cells), dtype=np.int64, count=len(cells))
    _, first = np.unique(codes, return_index=True)
    return codes, list(numbers), first.tolist()


def _named(cells: Sequence[object], read: Callable[[object, int], str]) -> tuple[Ints, tuple[str, ...]]:
    """Return a number for each row, and the name of each number, in the order of their first rows."""
    codes, distinct, first = _coded(cells)
    names: dict[str, int] = {}
    of_code = [names.setdefault(read(cell, row), len(names)) for cell, row in zip(distinct, first, strict=True)]
    return np.array(of_code, dtype=np.int64)[codes], tuple(names)


def _scores(cells: Sequence[object], where: Callable[[int], str]) -> Floats:
    plain = _plain_scores(cells)
    if plain is not None:
        return plain
    codes, distinct, first = _coded(cells)
    values = []
    for cell, row in zip(distinct, first, strict=True):
        value = outcome_of(cell, where(row))
        values.append(np.nan if value is None else value)
    return np.array(values, dtype=np.float64)[codes]


def _plain_scores(cells: Sequence[object]) -> Floats | None:
    """Return scores that are all texts of plain numbers; None if a cell needs a closer look."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell.isascii() and "_" not in cell]
    if len(texts) < len(cells):
        return None
    try:
        scores = np.fromiter(map(float, texts), dtype=np.float64, count=len(texts)) + 0.0  # turns -0.0 into 0.0
    except ValueError:
        return None
    return scores if np.all(np.abs(scores) <= LARGEST_OUTCOME) else None


def _one_name_per_run(run: Ints, runs: tuple[str, ...]) -> tuple[Ints, tuple[str, ...]]:
    """Return the runs with one spelling of each: 7, 07 and 7.0 are one seed."""
    keys = [replicate_key(name) for name in runs]
    if len(set(keys)) == len(keys):
        return run, runs
    names = dict.fromkeys(keys)
    number = {key: place for place, key in enumerate(names)}
    return np.array([number[key] for key in keys], dtype=np.int64)[run], tuple(names)


def _items(
    columns: Mapping[str, Sequence[object]], layout: ItemLayout, score: Floats, where: Where
) -> tuple[Ints, tuple[str, ...]]:
    """Return the items of the rows. A row without an item is that of a lost run, if it has no score either."""
    if not layout.item:
        return np.arange(score.size), tuple(map(str, range(score.size)))
    item, names = _named(columns[layout.item], lambda cell, _: cell_text(cell))
    if "" in names:
        unnamed = np.flatnonzero((item == names.index("")) & np.isfinite(score))
        if unnamed.size:
            raise UsageError(f"{where(int(unnamed[0]), 'item')}: empty, but every score needs an item")
    return item, names


def _clusters(columns: Mapping[str, Sequence[object]], column: str, rows: int) -> tuple[Ints, tuple[str, ...]]:
    """Return the clusters of the rows; -1 for a row that is in none."""
    if not column:
        return np.full(rows, -1), ()
    cluster, names = _named(columns[column], lambda cell, _: _blank_if_missing(cell_text(cell)))
    if "" in names:
        none = names.index("")
        cluster = np.where(cluster == none, -1, np.where(cluster > none, cluster - 1, cluster))
    return cluster, tuple(name for name in names if name)


def _blank_if_missing(text: str) -> str:
    return "" if text.lower() in NOTHING else text
