"""Start orders balance positions and neighbours, and their effects can be estimated."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from esper_ab.design.counterbalance import blocks_needed, cycle, order, orders_estimable, williams_square


@pytest.mark.parametrize("n", range(2, 9))
def test_williams_square_balances_positions_and_neighbours(n: int) -> None:
    rows = williams_square(n)
    places = Counter((position, value) for row in rows for position, value in enumerate(row))
    neighbours = Counter(pair for row in rows for pair in pairwise(row))
    assert len(rows) == (n if n % 2 == 0 else 2 * n)
    assert len(places) == n * n
    assert len(set(places.values())) == 1
    assert len(neighbours) == n * (n - 1)
    assert len(set(neighbours.values())) == 1


def test_fixed_positions_are_not_estimable() -> None:
    assert not orders_estimable([(0, 1), (0, 1), (0, 1)])
    assert orders_estimable([(0, 1), (1, 0)])
    assert not orders_estimable([(0, 1, 2), (1, 0, 2)])


@pytest.mark.parametrize("n", range(2, 7))
def test_a_cycle_and_the_blocks_needed_are_orders_estimable(n: int) -> None:
    for count in (blocks_needed(n), cycle(n)):
        assert orders_estimable([order(n, block) for block in range(count)])
    assert not orders_estimable([order(n, block) for block in range(blocks_needed(n) - 1)] or [order(n, 0)])
