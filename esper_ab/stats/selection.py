"""How much outcome is lost if candidates are chosen by a score: best of n, regret, misranked pairs, linear distance.

These statistics are descriptive: they describe the given candidates and claim nothing about further ones. They are
exact, because nothing is sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, two


@dataclass(frozen=True)
class Misranked:
    """A misranked pair of candidates: the score prefers one, but the other has the better outcome."""

    preferred: int
    better: int
    loss: float  # outcome of the better one minus that of the preferred one


def best_of_n(scores: ArrayLike, outcomes: ArrayLike) -> Floats:
    """Return the expected outcome of the candidate with the highest score among n, for n = 1 … N, [N].

    The n candidates are drawn at random without replacement from all N; among equal scores, each candidate is equally
    likely to be chosen. The probability that all n are among the b lowest is C(b, n) / C(N, n). So the probability that
    the highest score is in a group of equal scores on ranks a+1 … b is (C(b, n) - C(a, n)) / C(N, n).
    """
    score, outcome = _pair(scores, outcomes)
    _, group = np.unique(score, return_inverse=True)  # ascending
    sizes = np.bincount(group)
    means = np.bincount(group, weights=outcome) / sizes
    total = len(score)
    taken_counts = np.arange(total)  # i = 0 … N-1
    cumulated = np.concatenate(([0], np.cumsum(sizes)))  # b
    remaining_counts = np.maximum(cumulated[:, None] - taken_counts, 0)  # of the b lowest, when i are taken
    shares_below = np.cumprod(remaining_counts / (total - taken_counts), axis=1)  # [groups + 1, n]
    return np.asarray(means @ np.diff(shares_below, axis=0))


def regret(scores: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the best outcome minus that of the candidate with the highest score (in a tie, the mean outcome)."""
    score, outcome = _pair(scores, outcomes)
    return float(outcome.max() - outcome[score == score.max()].mean())


def worst_pairs(scores: ArrayLike, outcomes: ArrayLike, most_pairs: int) -> tuple[Misranked, ...]:
    """Return at most `most_pairs` misranked pairs in decreasing order of loss; each candidate is in at most one pair.

    A pair with equal scores is not misranked. The loss of the first pair is the largest possible regret of choosing by
    this score in a subset of the candidates.
    """
    score, outcome = _pair(scores, outcomes)
    preferred_to = score[:, None] > score[None, :]
    gain = outcome[None, :] - outcome[:, None]
    loss = np.where(preferred_to, gain, 0.0)  # [preferred, other]
    pairs: list[Misranked] = []
    while len(pairs) < most_pairs and loss.max() > 0:
        preferred_index, better_index = divmod(int(loss.argmax()), len(score))
        pairs.append(Misranked(preferred_index, better_index, float(loss[preferred_index, better_index])))
        for taken_index in (preferred_index, better_index):
            loss[taken_index, :] = 0.0
            loss[:, taken_index] = 0.0
    return tuple(pairs)


def linear_distance(scores: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the smallest d for which a line a + b·score with b >= 0 is within d of every outcome.

    d is 0 if and only if the outcome is a non-decreasing linear function of the score. d does not change if a constant
    is added to the score, or if the score is multiplied by a positive number. No misranked pair has a loss above 2d.
    """
    from scipy.optimize import linprog  # slow to import, and only here

    score, outcome = _pair(scores, outcomes)
    spread = float(np.ptp(score))
    if spread > 0:
        unit = (score - score.min()) / spread
    else:
        unit = np.zeros_like(score)
    unit_column = np.ones_like(unit)
    # Minimise d over (a, b, d): a + b·unit - d <= outcome and -a - b·unit - d <= -outcome.
    line_above = np.stack((unit_column, unit, -unit_column), 1)
    line_below = np.stack((-unit_column, -unit, -unit_column), 1)
    solution = linprog(
        [0.0, 0.0, 1.0],
        A_ub=np.vstack((line_above, line_below)),
        b_ub=np.concatenate((outcome, -outcome)),
        bounds=[(None, None), (0, None), (0, None)],
    )
    return float(solution.fun)


def _pair(scores: ArrayLike, outcomes: ArrayLike) -> tuple[Floats, Floats]:
    """Return scores and outcomes as arrays; ValueError if they are empty, not finite or of unequal length."""
    score, outcome = two(scores, outcomes)
    if not len(score):
        raise ValueError("there must be at least one candidate")
    return score, outcome
