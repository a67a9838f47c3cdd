"""Start orders balance positions and neighbours, and position effects can be estimated."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.contracts.rng import RngPath, shuffled
from esper_ab.design.counterbalance import (
    blocks_needed,
    cycle,
    draws_positions,
    estimable_orders,
    identified,
    order,
    order_drawn,
    williams_square,
)


@pytest.mark.parametrize("n", range(2, 9))
def test_a_williams_square_balances_positions_and_neighbours(n: int) -> None:
    rows = williams_square(n)
    position_counts = Counter((position, value) for row in rows for position, value in enumerate(row))
    neighbours = Counter(pair for row in rows for pair in pairwise(row))
    assert len(rows) == (n if n % 2 == 0 else 2 * n)
    assert len(position_counts) == n * n
    assert len(set(position_counts.values())) == 1
    assert len(neighbours) == n * (n - 1)
    assert len(set(neighbours.values())) == 1


@pytest.mark.parametrize("n", range(2, 7))
def test_position_effects_are_estimable_from_the_needed_number_of_blocks(n: int) -> None:
    for count in (blocks_needed(n), cycle(n)):
        assert estimable_orders([order(n, block) for block in range(count)])
    assert not estimable_orders([order(n, block) for block in range(blocks_needed(n) - 1)] or [order(n, 0)])


@pytest.mark.parametrize("n", range(2, 7))
def test_comparisons_of_up_to_six_groups_are_separable_from_positions(n: int) -> None:
    assert not draws_positions(n)
    for replicates in range(6, 31):
        for a, b in combinations(range(n), 2):
            orders = [order(n, block) for block in range(replicates)]
            assert identified([{a: (groups.index(a),), b: (groups.index(b),)} for groups in orders])


def is_identified_by_rank(blocks) -> bool:
    """Brute force: does [block, places, group] have a larger rank than [block, places], by the groups less one?"""
    runs = [(index, group, place) for index, block in enumerate(blocks) for group, place in block.items()]

    def columns(values):
        distinct_values = sorted(set(values), key=str)
        return np.array([[float(value == level) for level in distinct_values] for value in values])

    factors = range(len(runs[0][2]))
    other_columns = np.hstack(
        [columns([run[0] for run in runs]), *(columns([run[2][k] for run in runs]) for k in factors)]
    )
    whole = np.hstack([other_columns, columns([run[1] for run in runs])])
    rank_gain = np.linalg.matrix_rank(whole) - np.linalg.matrix_rank(other_columns)
    return bool(rank_gain == len({run[1] for run in runs}) - 1)


@st.composite
def blocks_of_places(draw):
    """Draw up to 5 groups in blocks on one of two sets of lanes, with independent devices and start orders."""
    n = draw(st.integers(2, 5))
    order = st.permutations(range(n))
    drawn_blocks = draw(st.lists(st.tuples(order, order, st.integers(0, 1)), min_size=1, max_size=8))
    return [
        {group: (sets * n + lanes[group], starts[group]) for group in range(n)} for lanes, starts, sets in drawn_blocks
    ]


@given(blocks_of_places())
def test_a_comparison_is_identified_if_the_design_matrix_has_full_rank(blocks) -> None:
    assert identified(blocks) == is_identified_by_rank(blocks)
    orders = [{group: place[1:] for group, place in block.items()} for block in blocks]
    assert identified(orders) == is_identified_by_rank(orders)


@pytest.mark.parametrize("n", [7, 12, 50])
def test_randomly_drawn_positions_form_a_latin_square(n: int) -> None:
    assert draws_positions(n)
    path = RngPath(7) / "positions"
    columns = shuffled(n, path)
    other_permutation = shuffled(n, path / 1)
    rows = [order_drawn(n, block, columns) for block in range(n)]
    assert all(sorted(row) == list(range(n)) for row in (*rows, *zip(*rows, strict=True)))  # a Latin square
    assert columns == shuffled(n, path)
    assert rows != [order_drawn(n, block, other_permutation) for block in range(n)]


@pytest.mark.parametrize(("n", "size"), [(7, 3.0), (12, 6.0), (50, 40.0)])
def test_randomly_drawn_positions_favour_no_group(n: int, size: float) -> None:
    """False claims of the paired t with 6 pairs if later positions give more: over draws, and with one square."""
    rng = np.random.default_rng(n)
    effects = np.linspace(0.0, size, n)

    def find_error_rate(squares: list[list[tuple[int, ...]]]) -> float:
        d = np.array([[effects[row.index(0)] - effects[row.index(n // 2)] for row in rows] for rows in squares])
        return float((stats.ttest_1samp(d + rng.standard_normal(d.shape), 0.0, axis=1).pvalue <= 0.05).mean())

    columns = [shuffled(n, RngPath(seed)) for seed in range(1_000)]
    drawn_orders = [[order_drawn(n, block, permutation) for block in range(6)] for permutation in columns]
    assert find_error_rate(drawn_orders) <= 0.075  # 0.05 and more than three standard errors
    if n == 50:
        assert find_error_rate([[order(n, block) for block in range(6)]] * 1_000) > 0.9
