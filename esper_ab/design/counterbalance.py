"""Assignment of groups to positions in a block, so that no position favours a group. Pure.

A position is a lane together with a place in the start order. Apart from group and position, the runs of a block do not
differ. Williams (1949), "Experimental designs balanced for the estimation of residual effects of treatments".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache

from esper_ab.stats.least_pairs import LEAST_PAIRS

Sides = Sequence[tuple[int, int]]  # per replicate, the positions of a and of b
Place = tuple[Hashable, ...]  # of a run: the level of each factor except the group
Row = dict[tuple[int, int], int]  # coefficients by column: (0, index) is a place, (1, index) a group


@cache
def williams_square(n: int) -> tuple[tuple[int, ...], ...]:
    """Return a row for each block with the treatment in each position, [rows, n]: n rows for even n, 2n for odd n.

    Every treatment is equally often in every position, and equally often directly after every other treatment.
    """
    first_row = [0]
    for step in range(1, n):
        signed_step = step if step % 2 else -step
        first_row.append((first_row[-1] + signed_step) % n)
    rows = [tuple((value + shift) % n for value in first_row) for shift in range(n)]
    if n % 2 and n > 1:
        rows += [row[::-1] for row in rows]
    return tuple(rows)


def cycle(n: int) -> int:
    """Return the number of blocks after which every group has been equally often in every position."""
    return len(williams_square(n))


def order(n: int, block: int) -> tuple[int, ...]:
    """Return the group in each position of the block with index `block` on its set of lanes."""
    rows = williams_square(n)
    return rows[block % len(rows)]


def draws_positions(n: int) -> bool:
    """Whether the positions in a square of `n` groups are drawn at random.

    Positions are drawn if the first look may come after half a square. Half a square puts each group into only some of
    the positions, so the positions must be chosen at random.
    """
    return n > LEAST_PAIRS


def order_drawn(n: int, block: int, columns: Sequence[int]) -> tuple[int, ...]:
    """Return the group in each position of a block after the square's positions are permuted by `columns`.

    The permutation is the same for all blocks. As in the square itself, no group has a position twice before all groups
    have had it. If groups were permuted instead, the same two groups could be adjacent in consecutive blocks.
    """
    row = order(n, block)
    return tuple(row[column] for column in columns)


def identified(blocks: Sequence[Mapping[Hashable, Place]]) -> bool:
    """Whether the differences between groups can be separated exactly from the effects of places.

    `blocks` has a mapping for each block, from every group to the place of its run. A place has one level per factor:
    (start order,) or (lane, start order). Block effects are removed by taking differences from one run of each block.
    The groups are identified if the rank of [places, groups] exceeds the rank of [places] by the number of groups minus
    1. The elimination uses integers, so nothing is rounded.
    """
    groups: dict[Hashable, int] = {}
    for block in blocks:
        for group in block:
            groups.setdefault(group, len(groups))
    basis: dict[tuple[int, int], Row] = {}  # by leading column; columns of groups come last
    seen_rows = set()
    contrasts = 0
    for row in _rows(blocks, groups):
        row_key = frozenset(row.items())
        if row_key in seen_rows:
            continue
        seen_rows.add(row_key)
        if _leads(basis, row):
            contrasts += 1
        if contrasts == len(groups) - 1:
            return True
    return False


def _rows(blocks: Sequence[Mapping[Hashable, Place]], groups: Mapping[Hashable, int]) -> Iterator[Row]:
    """Yield the row of each run minus the first run of its block."""
    columns: dict[Hashable, tuple[int, int]] = {}
    for block in blocks:
        (first_group, first_place), *other_groups = block.items()
        for group, place in other_groups:
            row: Row = {(1, groups[group]): 1, (1, groups[first_group]): -1}
            for factor, (level, first_level) in enumerate(zip(place, first_place, strict=True)):
                if level != first_level:
                    row[columns.setdefault((factor, level), (0, len(columns)))] = 1
                    row[columns.setdefault((factor, first_level), (0, len(columns)))] = -1
            yield row


def _leads(basis: dict[tuple[int, int], Row], row: Row) -> bool:
    """Reduce `row` by `basis` and add the remainder to `basis`; return whether the remainder contrasts only groups."""
    while row:
        lead = min(row)
        if lead not in basis:
            basis[lead] = row
            return lead[0] == 1
        row = _eliminate(row, basis[lead], lead)
    return False


def _eliminate(row: Row, other_row: Row, lead: tuple[int, int]) -> Row:
    """Return the combination of two rows whose coefficient at `lead` is 0, in lowest terms."""
    combined_row = {}
    for column in row.keys() | other_row.keys():
        value = other_row[lead] * row.get(column, 0) - row[lead] * other_row.get(column, 0)
        if value:
            combined_row[column] = value
    common_divisor = math.gcd(*combined_row.values())
    return {column: value // common_divisor for column, value in combined_row.items()}


def estimable_orders(orders: Sequence[tuple[int, ...]]) -> bool:
    """Whether blocks with these `orders` of groups by position separate all group effects from position effects."""
    blocks: list[dict[Hashable, Place]] = []
    for groups in orders:
        block_places: dict[Hashable, Place] = {group: (position,) for position, group in enumerate(groups)}
        blocks.append(block_places)
    return identified(blocks)


def blocks_needed(n: int) -> int:
    """Return the smallest number of consecutive blocks in which group and position effects can be separated."""
    orders = [order(n, block) for block in range(cycle(n))]
    return next(count for count in range(1, len(orders) + 1) if estimable_orders(orders[:count]))
