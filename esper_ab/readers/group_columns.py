"""Refuse a column of groups that has nearly as many groups as rows, such as a column of outcomes. Pure."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.verdict.names import Names

_MOST_GROUPS = 2  # a comparison of two single runs is none, but its groups may be meant


def check_groups(source: str, column: str, groups: Names) -> None:
    """Raise UsageError if most rows are alone in their group; `column`: the source's column that names the groups."""
    rows = groups.codes.size
    counts = np.bincount(groups.codes).tolist()
    single_groups = [group for group, count in zip(groups.names, counts, strict=True) if count == 1]
    if len(counts) <= _MOST_GROUPS or 2 * len(single_groups) <= rows:
        return
    column_words = visible_line(column)
    example = visible_line(single_groups[0], 40)
    raise UsageError(
        f"{source}, column {column_words}: it would make nearly every row a group of its own ({len(counts)} groups in "
        f"{rows} rows, such as {example}); as group, name the column that tells which setting a run had"
    )
