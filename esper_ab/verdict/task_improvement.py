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
    signs = {scale.task: scale.outcome.sign for scale in scales}
    runs = observations.rows
    improvements = []
    for a, b in dict.fromkeys(pairs):  # each once, though it is compared in every task
        runs_a = [np.sort(sign * runs.outcomes(a, task)) for task, sign in signs.items()]
        runs_b = [np.sort(sign * runs.outcomes(b, task)) for task, sign in signs.items()]
        sizes = [side.size for side in (*runs_a, *runs_b)]
        if min(sizes) > 0 and max(sizes) <= _MOST_RUNS:
            tasks = list(zip(runs_a, runs_b, strict=True))
            improvements.append(_improvement(a, b, tasks, np.random.default_rng(rng_seed)))
    return tuple(improvements)


def _improvement(a: str, b: str, tasks: Sequence[tuple[Floats, Floats]], rng: Generator) -> TaskImprovement:
    """Compute the improvement from the runs of a and b in each task, in ascending order; higher is better."""
    resampled_means = np.zeros(RESAMPLES)
    for runs_a, runs_b in tasks:
        weights_a = _resampled_weights(runs_a.size, rng)
        weights_b = _resampled_weights(runs_b.size, rng)
        resampled_means += np.einsum("ri,ri->r", weights_a @ _chances(runs_a, runs_b), weights_b) / len(tasks)
    low, high = np.quantile(resampled_means, _TAILS)
    probabilities = [np.mean(_chances(runs_a, runs_b)) for runs_a, runs_b in tasks]
    return TaskImprovement(
        a=a,
        b=b,
        tasks=len(tasks),
        runs=min(min(runs_a.size, runs_b.size) for runs_a, runs_b in tasks),
        probability=float(np.mean(probabilities)),
        low=float(low),
        high=float(high),
    )


def _resampled_weights(runs: int, rng: Generator) -> Floats:
    """Return the share of each run in every resample [resamples, runs]."""
    return rng.multinomial(runs, np.full(runs, 1.0 / runs), RESAMPLES) / runs


def _chances(runs_a: Floats, runs_b: Floats) -> Floats:
    """Return the chance of each run of a against each run of b [n, m]: 1 if it is better, a half if it is equal."""
    return np.asarray((runs_a[:, None] > runs_b) + 0.5 * (runs_a[:, None] == runs_b))
