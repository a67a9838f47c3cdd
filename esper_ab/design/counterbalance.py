"""Assignment of groups to positions in a block, so that no position favours a group. Pure.

A position is what differs between the runs of one block besides their group: the lane and the start order, which are
tied. Williams (1949), "Experimental designs balanced for the estimation of residual effects of treatments".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from fractions import Fraction

from esper_ab.contracts.rng import RngPath
from esper_ab.stats.least_pairs import LEAST_PAIRS


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


def order_drawn(n: int, block: int, path: RngPath) -> tuple[int, ...]:
    """Return the order of a block in the square whose positions are permuted as drawn at `path`, alike in all blocks.

    Still no group stands twice in a position before all others did. A permutation of groups would not do: positions
    that follow one another in the square would meet the same two groups in a row.
    """
    row = order(n, block)
    return tuple(row[column] for column in shuffled(n, path))


def told_apart(places: Sequence[tuple[Hashable, Hashable]]) -> bool:
    """Return whether the difference of two groups can be told from effects of places (lane, start order).

    `places` of the first and of the second group, per pair. It cannot exactly if some effects of places give every
    pair the same difference: an edge per pair, and no closed way may have more edges forwards than backwards.
    """
    edges = defaultdict(list)
    for a, b in places:
        edges[b].append((a, 1))
        edges[a].append((b, -1))
    level: dict[Hashable, int] = {}
    for start in edges:
        waiting = [] if start in level else [start]
        level.setdefault(start, 0)
        while waiting:
            here = waiting.pop()
            for there, step in edges[here]:
                if there not in level:
                    level[there] = level[here] + step
                    waiting.append(there)
                elif level[there] != level[here] + step:
                    return True
    return False


def shuffled(n: int, path: RngPath) -> tuple[int, ...]:
    """Return 0 … n-1 in an order drawn at `path`: sorted by independent 128-bit hashes."""
    return tuple(sorted(range(n), key=lambda i: (path / i).key()))


def _rank(matrix: list[list[Fraction]]) -> int:
    rows, rank = [list(row) for row in matrix], 0
    for column in range(len(matrix[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def orders_estimable(orders: Sequence[tuple[int, ...]]) -> bool:
    """Return whether blocks run in these `orders` identify group differences beside block and position effects.

    Exact: the rank of [block, position] must grow by n - 1 when the groups are added.
    """
    orders = tuple(dict.fromkeys(orders))  # a repeated order adds no rank for groups and positions
    n = len(orders[0])

    def indicator(index: int, size: int) -> list[Fraction]:
        return [Fraction(index == i) for i in range(size)]

    nuisance, full = [], []
    for block, groups in enumerate(orders):
        for position, group in enumerate(groups):
            known = indicator(block, len(orders)) + indicator(position, n)
            nuisance.append(known)
            full.append(known + indicator(group, n))
    return _rank(full) - _rank(nuisance) == n - 1


def blocks_needed(n: int) -> int:
    """Return the least number of consecutive blocks in which group differences are estimable beside the positions."""
    orders = [order(n, block) for block in range(cycle(n))]
    return next(count for count in range(1, len(orders) + 1) if orders_estimable(orders[:count]))
