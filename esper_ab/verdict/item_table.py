"""Rows of items of runs, as a source has them: one score of one run on one item per row, in columns. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.stats.floats import Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemTable:
    """All scores of a source. Columns of numbers, all [rows], say which of the names a row has.

    Items of different tasks are different items, whatever their names. Rows of one run, task and item are repeats.
    """

    unit: str  # the word for an item, such as "question"
    item_column: str  # the source's name; "": items have no names, so that no two rows are about one item
    groups: tuple[str, ...]
    tasks: tuple[str, ...]  # ("",) if there are none
    runs: tuple[str, ...]  # names of seeds or runs; ("",) if each group is one run
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    group: Ints
    task: Ints
    run: Ints
    item: Ints
    cluster: Ints  # -1: in none
    score: Floats  # NaN: lost
