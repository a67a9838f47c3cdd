"""Choosing by a score, against brute force over all subsets, and rules that hold for every reward."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.selection import best_of_n, linear_distance, regret, worst_pairs

VALUES = st.integers(-40, 40).map(lambda eighths: eighths / 8)  # exact, and few, so that there are ties
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=7).map(lambda rows: np.array(rows).T)


def average_over_subsets(scores: np.ndarray, outcomes: np.ndarray, n: int) -> float:
    """Return the mean, over all subsets of size n, of the mean outcome of those with the highest score."""
    means = []
    for chosen_indices in combinations(range(len(scores)), n):
        chosen_scores = scores[list(chosen_indices)]
        top = outcomes[list(chosen_indices)]
        means.append(top[chosen_scores == chosen_scores.max()].mean())
    return float(np.mean(means))


@given(PAIRS)
def test_best_of_n_equals_the_mean_over_all_subsets(pair: np.ndarray) -> None:
    scores, outcomes = pair
    expected = [average_over_subsets(scores, outcomes, n) for n in range(1, len(scores) + 1)]
    assert best_of_n(scores, outcomes) == pytest.approx(expected, abs=1e-9)


@given(PAIRS, st.sampled_from([0.25, 1.0, 3.0]), VALUES)
def test_a_score_with_the_order_of_the_outcome_has_no_regret(pair: np.ndarray, factor: float, shift: float) -> None:
    outcomes = pair[1]
    scores = factor * outcomes + shift
    assert regret(scores, outcomes) == 0
    assert worst_pairs(scores, outcomes, 3) == ()
    assert linear_distance(scores, outcomes) == pytest.approx(0, abs=1e-7)


@given(PAIRS, st.sampled_from([0.25, 2.0, 64.0]), st.integers(-8, 8))
def test_scaling_or_shifting_a_score_changes_no_result(pair: np.ndarray, factor: float, shift: int) -> None:
    scores, outcomes = pair
    other_scores = factor * (scores + shift)
    assert np.array_equal(best_of_n(other_scores, outcomes), best_of_n(scores, outcomes))
    assert regret(other_scores, outcomes) == regret(scores, outcomes)
    assert worst_pairs(other_scores, outcomes, 3) == worst_pairs(scores, outcomes, 3)
    assert linear_distance(other_scores, outcomes) == pytest.approx(linear_distance(scores, outcomes), abs=1e-7)


def test_the_opposite_of_the_outcome_is_the_worst_score() -> None:
    """The opposite of the outcome is as far from it as a score can be."""
    outcomes = [1.0, 2.0, 4.0]
    assert regret(outcomes, outcomes) == 0
    opposite_scores = [-value for value in outcomes]
    assert regret(opposite_scores, outcomes) == 3
    assert linear_distance(opposite_scores, outcomes) == pytest.approx(1.5)
    assert best_of_n(opposite_scores, outcomes).tolist() == pytest.approx([7 / 3, 4 / 3, 1])


@given(PAIRS)
def test_the_worst_pair_bounds_the_loss_of_every_choice(pair: np.ndarray) -> None:
    scores, outcomes = pair
    wrong_pairs = worst_pairs(scores, outcomes, 9)
    paired_indices = [index for misranked in wrong_pairs for index in (misranked.preferred, misranked.better)]
    assert len(paired_indices) == len(set(paired_indices))
    assert [misranked.loss for misranked in wrong_pairs] == sorted(
        (misranked.loss for misranked in wrong_pairs), reverse=True
    )
    for misranked in wrong_pairs:
        assert scores[misranked.preferred] > scores[misranked.better]
        assert misranked.loss == outcomes[misranked.better] - outcomes[misranked.preferred] > 0
    index_pairs = permutations(range(len(scores)), 2)
    largest_loss = max([0.0, *(outcomes[j] - outcomes[i] for i, j in index_pairs if scores[i] > scores[j])])
    assert (wrong_pairs[0].loss if wrong_pairs else 0.0) == largest_loss
    assert largest_loss <= 2 * linear_distance(scores, outcomes) + 1e-7
