"""Assignment of groups to positions in a block, so that no position favours a group. Pure.

A position is what differs between the runs of one block besides their group: the lane and the start order, which are
tied. Williams (1949), "Experimental designs balanced for the estimation of residual effects of treatments".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

from esper_ab.stats.least_pairs import LEAST_PAIRS

Sides = Sequence[tuple[int, int]]  # per replicate, the positions of a and of b
Place = tuple[Hashable, ...]  # of a run: the level of each factor besides its group


@cache
def williams_square(n: int) -> tuple[tuple[int, ...], ...]:
    """Return rows (one per block) of treatments by position, [rows, n]: n rows when n is even, 2n when it is odd.

    Every treatment is equally often in every position and equally often directly after every other one.
    """
    first = [0]
    for step in range(1, n):
        first.append((first[-1] + (step if step % 2 else -step)) % n)
    rows = [tuple((value + shift) % n for value in first) for shift in range(n)]
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
    """Return whether the positions of a square of `n` groups are drawn by lot: a first look can be half a square.

    Then every group has stood in some positions only, and which those are has to be chance.
    """
    return n > LEAST_PAIRS


def order_drawn(n: int, block: int, columns: Sequence[int]) -> tuple[int, ...]:
    """Return the order of a block in the square whose positions are permuted by `columns`, alike in all blocks.

    Still no group stands twice in a position before all others did. A permutation of groups would not do: positions
    that follow one another in the square would meet the same two groups in a row.
    """
    row = order(n, block)
    return tuple(row[column] for column in columns)


def identified(blocks: Sequence[Mapping[Hashable, Place]]) -> bool:
    """Return whether the differences of the groups can be told from effects of their places, exactly.

    `blocks`: in each, the place of every group's run, a level per factor: (start order,) or (lane, start order). Each
    block's runs are taken as differences from one of them, so that an effect of the block drops out. They identify the
    groups if the rank of [places, groups] exceeds that of [places] by the number of groups less one. Integers are
    eliminated, so nothing is rounded.
    """
    groups = {group: index for index, group in enumerate(dict.fromkeys(group for block in blocks for group in block))}
    basis: dict[tuple[int, int], dict[tuple[int, int], int]] = {}  # by leading column; those of groups come last
    columns: dict[Hashable, tuple[int, int]] = {}
    seen, contrasts = set(), 0
    for block in blocks:
        (first, there), *others = block.items()
        for group, place in others:
            row: dict[tuple[int, int], int] = {(1, groups[group]): 1, (1, groups[first]): -1}
            for factor, levels in enumerate(zip(place, there, strict=True)):
                if levels[0] != levels[1]:
                    for level, sign in zip(levels, (1, -1), strict=True):
                        row[columns.setdefault((factor, level), (0, len(columns)))] = sign
            if (known := frozenset(row.items())) in seen:
                continue
            seen.add(known)
            contrasts += _leads(basis, row)
            if contrasts == len(groups) - 1:
                return True
    return False


def _leads(basis: dict[tuple[int, int], dict[tuple[int, int], int]], row: dict[tuple[int, int], int]) -> bool:
    """Reduce `row` by the basis and add what is left of it; return whether that is a contrast of groups alone."""
    while row:
        lead = min(row)
        if lead not in basis:
            basis[lead] = row
            return lead[0] == 1
        other = basis[lead]
        mine, its = row[lead], other[lead]
        row = {
            column: value for column in row.keys() | other.keys()
            if (value := its * row.get(column, 0) - mine * other.get(column, 0))
        }  # fmt: skip
        shared = math.gcd(*row.values())
        row = {column: value // shared for column, value in row.items()}
    return False


def estimable_orders(orders: Sequence[tuple[int, ...]]) -> bool:
    """Return whether blocks whose groups start in these `orders` tell all groups from the positions."""
    return identified([{group: (position,) for position, group in enumerate(groups)} for groups in orders])


def blocks_needed(n: int) -> int:
    """Return the least number of consecutive blocks in which group differences are estimable beside the positions."""
    orders = [order(n, block) for block in range(cycle(n))]
    return next(count for count in range(1, len(orders) + 1) if estimable_orders(orders[:count]))
