"""What is done elsewhere: rules whose error is shown beside ours. Shapes: N experiments, R pairs, E last episodes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simulation.laws import Array

ALPHA = 0.05
RESAMPLES = 2000  # of the bootstrap; one set of resampling weights serves all experiments of a call
_BLOCK = 1000  # experiments at a time
Flags = NDArray[np.bool_]
Claim = Callable[[Array, Array, np.random.Generator], Flags]  # a, b [N, R, E] -> whether a difference is claimed


def last_episode(a: Array, b: Array, rng: np.random.Generator) -> Flags:
    """The larger mean of last episodes wins: there is always a winner."""
    return np.asarray(a[:, :, -1].mean(axis=1) != b[:, :, -1].mean(axis=1))


def pooled_mann_whitney(a: Array, b: Array, rng: np.random.Generator) -> Flags:
    """Mann-Whitney U on all episodes of all runs; normal approximation with continuity, as no ties occur."""
    count, size = a.shape[0], a[0].size
    both = np.concatenate((a.reshape(count, -1), b.reshape(count, -1)), axis=1)
    ranks = both.argsort(axis=1).argsort(axis=1) + 1
    u = ranks[:, :size].sum(axis=1) - size * (size + 1) / 2
    spread = math.sqrt(size * size * (2 * size + 1) / 12)
    return np.asarray((np.abs(u - size * size / 2) - 0.5) / spread >= stats.norm.isf(ALPHA / 2))


def paired_t(a: Array, b: Array, rng: np.random.Generator) -> Flags:
    """Student's paired t on outcomes."""
    d = a.mean(axis=2) - b.mean(axis=2)
    return _paired_t(d)


def welch(a: Array, b: Array, rng: np.random.Generator) -> Flags:
    """Welch's t on outcomes, pairs ignored."""
    found = stats.ttest_ind(a.mean(axis=2), b.mean(axis=2), axis=1, equal_var=False)
    return np.asarray(found.pvalue <= ALPHA)


def peeking(a: Array, b: Array, rng: np.random.Generator) -> Flags:
    """The paired t after every pair from the third on, until it says yes."""
    d = a.mean(axis=2) - b.mean(axis=2)
    return np.asarray(np.any([_paired_t(d[:, :n]) for n in range(3, d.shape[1] + 1)], axis=0))


def bootstrap(a: Array, b: Array, rng: np.random.Generator) -> Flags:
    """Percentile interval of the difference of means, groups resampled apart, excludes 0."""
    runs = a.shape[1]
    in_a, in_b = _weights(runs, rng), _weights(runs, rng)
    return _excludes_zero(a.mean(axis=2), in_a, b.mean(axis=2), in_b)


def paired_bootstrap(a: Array, b: Array, rng: np.random.Generator) -> Flags:
    """Percentile interval of the mean difference, pairs resampled, excludes 0."""
    weights = _weights(a.shape[1], rng)
    return _excludes_zero(a.mean(axis=2), weights, b.mean(axis=2), weights)


RULES: dict[str, tuple[Claim, tuple[int, ...]]] = {  # name -> rule, numbers of pairs at which it is tried
    "winner of the last episode": (last_episode, (1, 6, 10, 20)),
    "Mann-Whitney, last 10 episodes pooled": (pooled_mann_whitney, (1, 6, 10, 20)),
    "percentile bootstrap": (bootstrap, (6, 10, 20)),
    "percentile bootstrap of pairs": (paired_bootstrap, (6, 10, 20)),
    "paired t after every pair from 3": (peeking, (6, 10, 20)),
    "Welch's t, one look": (welch, (6, 10, 20)),
    "paired t, one look, lanes ignored": (paired_t, (6, 10, 20)),
}


def _paired_t(d: Array) -> Flags:
    n = d.shape[1]
    t = d.mean(axis=1) / (d.std(axis=1, ddof=1) / math.sqrt(n))
    return np.asarray(np.abs(t) >= stats.t.isf(ALPHA / 2, n - 1))


def _weights(runs: int, rng: np.random.Generator) -> Array:
    """[resamples, runs]: share of every run in a resample's mean."""
    return np.asarray(rng.multinomial(runs, np.full(runs, 1.0 / runs), RESAMPLES) / runs)


def _excludes_zero(a: Array, in_a: Array, b: Array, in_b: Array) -> Flags:
    found = []
    for start in range(0, a.shape[0], _BLOCK):
        block = slice(start, start + _BLOCK)
        low, high = np.quantile(a[block] @ in_a.T - b[block] @ in_b.T, [ALPHA / 2, 1 - ALPHA / 2], axis=1)
        found.append((low > 0.0) | (high < 0.0))
    return np.concatenate(found)
