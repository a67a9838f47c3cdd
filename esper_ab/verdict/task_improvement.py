"""The probability of improvement over several tasks, as in rliable (Agarwal et al. 2021). Pure.

It is the mean over tasks of P(a run of a is better than a run of b) + P(equal) / 2, every task with equal weight. The
interval is the 95 % percentile bootstrap, stratified by task and group. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.random import Generator

from esper_ab.stats.floats import Floats
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.scale import Scale

RESAMPLES = 2_000
_TAILS = (0.025, 0.975)  # of a 95 % interval
_MOST_RUNS = 500  # of a group in a task; with more, a resampling would take seconds


class TaskImprovement(msgspec.Struct, frozen=True, kw_only=True):
    """The probability that a is better than b, averaged over tasks, with its interval."""

    a: str
    b: str
    tasks: int
    runs: int  # of a group, in the task with the fewest
    probability: float
    low: float
    high: float


def task_improvements(
    observations: Observations, scales: Sequence[Scale], pairs: Sequence[tuple[str, str]], rng_seed: int
) -> tuple[TaskImprovement, ...]:
    """Return the improvement of a over b for every (a, b) of `pairs` with 1 to 500 runs in each task.

    () for one task.
    """
    if len(scales) < 2:
        return ()
    runs: dict[tuple[str, str], list[float]] = {}
    signs = {scale.task: scale.outcome.sign for scale in scales}
    for row in observations.rows:
        if row.value is not None and row.task in signs:
            runs.setdefault((row.group, row.task), []).append(signs[row.task] * row.value)
    found = []
    for a, b in dict.fromkeys(pairs):  # each once, though it is compared in every task
        sides = [[np.sort(runs.get((group, task), ())) for group in (a, b)] for task in signs]
        sizes = [side.size for task in sides for side in task]
        if min(sizes) > 0 and max(sizes) <= _MOST_RUNS:
            found.append(_improvement(a, b, sides, np.random.default_rng(rng_seed)))
    return tuple(found)


def _improvement(a: str, b: str, tasks: Sequence[Sequence[Floats]], rng: Generator) -> TaskImprovement:
    """Compute the improvement from the runs of a and b in each task, in ascending order; higher is better."""
    resampled = np.zeros(RESAMPLES)
    for of_a, of_b in tasks:
        # Chances of each run of a against each run of b [n, m]; a resample counts each run so many times.
        chances = (of_a[:, None] > of_b) + 0.5 * (of_a[:, None] == of_b)
        times_a, times_b = (
            rng.multinomial(side.size, np.full(side.size, 1.0 / side.size), RESAMPLES) / side.size
            for side in (of_a, of_b)
        )
        resampled += np.einsum("ri,ri->r", times_a @ chances, times_b) / len(tasks)
    low, high = np.quantile(resampled, _TAILS)
    return TaskImprovement(
        a=a,
        b=b,
        tasks=len(tasks),
        runs=min(side.size for task in tasks for side in task),
        probability=float(np.mean([_probability(of_a, of_b) for of_a, of_b in tasks])),
        low=float(low),
        high=float(high),
    )


def _probability(of_a: Floats, of_b: Floats) -> float:
    return float(np.mean((of_a[:, None] > of_b) + 0.5 * (of_a[:, None] == of_b)))
