"""Choosing by a score: exact against brute force over all subsets, and the laws that every reward must obey."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.selection import best_of_n, linear_distance, regret, worst_pairs

VALUES = st.integers(-40, 40).map(lambda eighths: eighths / 8)  # exact, and few, so that there are ties
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=7).map(lambda rows: np.array(rows).T)


def brute_force(scores: np.ndarray, outcomes: np.ndarray, n: int) -> float:
    """Mean over all subsets of size n of the mean outcome of those with the highest score."""
    found = []
    for chosen in combinations(range(len(scores)), n):
        own = scores[list(chosen)]
        top = outcomes[list(chosen)]
        found.append(top[own == own.max()].mean())
    return float(np.mean(found))


@given(PAIRS)
def test_best_of_n_is_the_mean_over_all_subsets(pair: np.ndarray) -> None:
    scores, outcomes = pair
    expected = [brute_force(scores, outcomes, n) for n in range(1, len(scores) + 1)]
    assert best_of_n(scores, outcomes) == pytest.approx(expected, abs=1e-9)


@given(PAIRS, st.sampled_from([0.25, 1.0, 3.0]), VALUES)
def test_a_score_that_orders_like_the_outcome_costs_nothing(pair: np.ndarray, factor: float, shift: float) -> None:
    outcomes = pair[1]
    scores = factor * outcomes + shift
    assert regret(scores, outcomes) == 0
    assert worst_pairs(scores, outcomes, 3) == ()
    assert linear_distance(scores, outcomes) == pytest.approx(0, abs=1e-7)


@given(PAIRS, st.sampled_from([0.25, 2.0, 64.0]), st.integers(-8, 8))
def test_a_positive_multiple_and_a_constant_change_nothing(pair: np.ndarray, factor: float, shift: int) -> None:
    scores, outcomes = pair
    other = factor * (scores + shift)
    assert np.array_equal(best_of_n(other, outcomes), best_of_n(scores, outcomes))
    assert regret(other, outcomes) == regret(scores, outcomes)
    assert worst_pairs(other, outcomes, 3) == worst_pairs(scores, outcomes, 3)
    assert linear_distance(other, outcomes) == pytest.approx(linear_distance(scores, outcomes), abs=1e-7)


def test_the_sign_of_a_score_matters() -> None:
    """What must not be invariant: the opposite of the outcome is as far from it as a score can be."""
    outcomes = [1.0, 2.0, 4.0]
    assert regret(outcomes, outcomes) == 0
    opposite = [-value for value in outcomes]
    assert regret(opposite, outcomes) == 3
    assert linear_distance(opposite, outcomes) == pytest.approx(1.5)
    assert best_of_n(opposite, outcomes).tolist() == pytest.approx([7 / 3, 4 / 3, 1])


@given(PAIRS)
def test_worst_pairs_are_in_the_wrong_order_and_the_first_bounds_every_choice(pair: np.ndarray) -> None:
    scores, outcomes = pair
    found = worst_pairs(scores, outcomes, 9)
    taken = [place for one in found for place in (one.preferred, one.better)]
    assert len(taken) == len(set(taken))
    assert [one.loss for one in found] == sorted((one.loss for one in found), reverse=True)
    for one in found:
        assert scores[one.preferred] > scores[one.better]
        assert one.loss == outcomes[one.better] - outcomes[one.preferred] > 0
    places = permutations(range(len(scores)), 2)
    worst = max([0.0, *(outcomes[j] - outcomes[i] for i, j in places if scores[i] > scores[j])])
    assert (found[0].loss if found else 0.0) == worst
    assert worst <= 2 * linear_distance(scores, outcomes) + 1e-7
