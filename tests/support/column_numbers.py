"""Everything that columns hold, to compare."""

from __future__ import annotations

from esper_ab.journal.columns import NAMES, Columns


def numbers(columns: Columns) -> tuple[object, ...]:
    """Everything, so that NaN is equal to NaN."""
    arrays = [columns.episodes, *map(columns.of, NAMES), *map(columns.measure, columns.measures)]
    heads = {name: tuple(one.tobytes() for one in columns.head(name)) for name in columns.heads}
    return [one.tobytes() for one in arrays], columns.digests, columns.measures, heads, columns.heads
