"""Simulate how often pooled experiments over several tasks err: a table of docs/evidence/pooled.md.

`scripts/pooled_rates` writes it. Every experiment compares two groups on the same tasks and on their mean, in one look
at all seeds; the pair's differences on a task have an SD of one margin. The comparisons share alpha, and one that is
decided as larger than the margin hands its share on, as in `verdict/looks.py`; the sign-flip test, which some numbers
of pairs also need, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esper_ab.stats.distributions import t_isf, t_sf
from esper_ab.stats.pooled_bound import alpha_of_pooling

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALPHA = 0.05
MOST = 5  # experiments of one question
EXPERIMENTS = 20_000
RNG_SEED = 67


@dataclass(frozen=True)
class Case:
    """What is true on every task, in margins, and how its pairs vary."""

    words: str
    differences: tuple[float, ...]
    correlation: float = 0.0  # of a pair's differences on two tasks
    heavy: bool = False  # t with 3 degrees of freedom in place of a normal


CASES = (
    Case("3 tasks, nothing differs", (0.0,) * 3),
    Case("3 tasks that vary together (0.8), nothing differs", (0.0,) * 3, correlation=0.8),
    Case("3 tasks, t with 3 degrees of freedom, nothing differs", (0.0,) * 3, heavy=True),
    Case("8 tasks, nothing differs", (0.0,) * 8),
    Case("3 tasks, 3 margins on one of them", (3.0, 0.0, 0.0)),
    Case("2 tasks, 3 margins for either group, so none on the mean", (3.0, -3.0)),
    Case("3 tasks, exactly a margin on each", (1.0,) * 3),
)


@dataclass(frozen=True)
class Claims:
    """What is claimed, of the tasks and last of their mean; both [repetitions, comparisons]."""

    sign: Floats  # of the claimed difference; 0: none is claimed
    beyond: Bools  # it is claimed to be larger than the margin

    def false(self, differences: Floats) -> Bools:
        """Return whether any claim is false [repetitions]; `differences`: the true ones [comparisons]."""
        wrong_sign = (self.sign != 0.0) & (self.sign != np.sign(differences))
        return np.asarray((wrong_sign | (self.beyond & (np.abs(differences) <= 1.0))).any(axis=1))


def draw(case: Case, seeds: int, repetitions: int) -> Floats:
    """Return differences in margins [repetitions, MOST, seeds, comparisons], the mean over tasks last."""
    rng = np.random.default_rng([RNG_SEED, seeds, CASES.index(case)])
    shape = (repetitions, MOST, seeds, len(case.differences))
    own = rng.standard_t(3, shape) / np.sqrt(3.0) if case.heavy else rng.standard_normal(shape)
    common = rng.standard_normal((*shape[:-1], 1))
    on_tasks = np.sqrt(1.0 - case.correlation) * own + np.sqrt(case.correlation) * common + case.differences
    return np.concatenate((on_tasks, on_tasks.mean(axis=-1, keepdims=True)), axis=-1)


def family(pairs: Floats, alpha: float) -> Claims:
    """Return the claims from `pairs` [repetitions, pairs, comparisons], which share `alpha`."""
    size = pairs.shape[1]
    mean = pairs.mean(axis=1)
    se = pairs.std(axis=1, ddof=1) / np.sqrt(size)
    p = 2.0 * t_sf(np.abs(mean) / se, size - 1)
    comparisons = pairs.shape[2]
    claimed = np.zeros(mean.shape, dtype=bool)
    beyond = np.zeros(mean.shape, dtype=bool)
    n_open = np.full(len(mean), comparisons)
    for _ in range(comparisons):  # in each round, shares are handed on once
        share = alpha / np.maximum(n_open, 1)[:, None]
        newly_claimed = (p <= share) & ~claimed
        half_width = np.asarray(t_isf(share / 2.0, size - 1)) * se
        beyond |= newly_claimed & (np.abs(mean) - half_width >= 1.0)
        claimed |= newly_claimed
        n_open = comparisons - beyond.sum(axis=1)
    return Claims(np.where(claimed, np.sign(mean), 0.0), beyond)


def launching(case: Case, seeds: int, repetitions: int = EXPERIMENTS) -> dict[str, Bools]:
    """Return, per rule of launching, whether the pooled answer makes a false claim; then what it finds."""
    pairs = draw(case, seeds, repetitions)
    truth = np.array([*case.differences, np.mean(case.differences)])
    first = family(pairs[:, 0], ALPHA)
    pooled = [
        family(pairs[:, :count].reshape(repetitions, count * seeds, -1), alpha_of_pooling(ALPHA, count))
        for count in range(2, MOST + 1)
    ]
    false = [claims.false(truth) for claims in pooled]
    on_mean_open = first.sign[:, -1] == 0.0
    return {
        "1 alone": first.false(truth),
        "always 2": false[0],
        "always 3": false[1],
        "2nd if the mean of the 1st is open": on_mean_open & false[0],
        "2nd if the mean of the 1st is claimed": ~on_mean_open & false[0],
        f"ever, of 2 to {MOST}": np.any(false, axis=0),
    }


def tasks_table() -> Iterator[list[str]]:
    """Yield the rates of false claims, on any task or on the mean."""
    header: list[str] = []
    for case in CASES:
        for seeds in (6, 20):
            rates = launching(case, seeds)
            if not header:
                header = ["what is true", "seeds", *rates]
                yield header
            yield [case.words, str(seeds), *(f"{100.0 * float(np.mean(values)):.2f}" for values in rates.values())]
