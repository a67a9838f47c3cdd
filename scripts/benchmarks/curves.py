"""Learning curves of our PPO by the native kernel and by torch, and of Stable-Baselines3 (`--sb3` interpreter)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import ppo
from benchmarks.machine import FEW

SEEDS, ROLLOUTS, RATE = 30, 100, 1e-3
MARGINS = {"CartPole-v1": 50.0, "Acrobot-v1": 50.0, "Pendulum-v1": 150.0}  # a tenth of the range of returns
PARTS = {"whole training": slice(0, 10), "last tenth": slice(9, 10)}
# Standard deviations of a run's return that were seen before (docs/evidence/field.md): for the power.
SDS = {"CartPole-v1": (14.0, 72.0), "Acrobot-v1": (4.0, 5.0), "Pendulum-v1": (44.0, 38.0)}  # ours, SB3
Curve = list[float]  # the mean return in each tenth of a training


def measure(repeats: int, sb3: str = "") -> dict[str, Any]:
    """Train all learners on all seeds."""
    seeds = range(9000, 9000 + (2 if repeats <= FEW else SEEDS))
    found = []
    for task in MARGINS:
        learners: dict[str, Callable[[int], Curve]] = {
            "native": lambda seed, task=task: _ours(task, seed, native=True),
            "torch": lambda seed, task=task: _ours(task, seed, native=False),
        }
        if sb3:
            learners["SB3"] = _other(sb3, task)
        curves = {name: [play(seed) for seed in seeds] for name, play in learners.items()}
        found.append({"task": task, "curves": curves})
        print(task, _means(curves), flush=True)
    return {"curves": found}


def _ours(task: str, seed: int, *, native: bool) -> Curve:
    session = ppo.session_of(task, "none", rate=RATE, episodes=ROLLOUTS, seed=seed, native=native)
    means: list[float | None] = []
    for episode in range(ROLLOUTS):
        record = session.train(episode, lambda step: None, lambda step: None)
        ended = [env.outcome for env in record.envs if env.outcome is not None]
        means.append(float(np.mean(ended)) if ended else None)
    return _tenths(means)


def _other(python: str, task: str) -> Callable[[int], Curve]:
    child = ppo.other_learner(python, "stable_baselines3", task, str(RATE))

    def play(seed: int) -> Curve:
        print(seed, ROLLOUTS, file=child.stdin, flush=True)
        return _tenths(json.loads(child.stdout.readline())) if child.stdout else []

    return play


def _tenths(means: list[float | None]) -> Curve:
    """Return means over the rollouts of each tenth in which an episode ended."""
    tenths = np.nanmean(np.array(means, dtype=np.float64).reshape(10, -1), axis=1)
    return [round(float(mean), 3) for mean in tenths]


def _outcomes(curves: list[Curve], part: slice) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the mean of each run's curve over `part`, [seeds]."""
    return np.array([np.mean(curve[part]) for curve in curves])


def _means(curves: dict[str, list[Curve]]) -> dict[str, list[float]]:
    return {name: [round(float(_outcomes(of, part).mean()), 1) for part in PARTS.values()]
            for name, of in curves.items()}  # fmt: skip


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's tables."""
    steps = f"{ROLLOUTS * ppo.N_ENVS * ppo.STEPS:,}"
    lines = [
        f"{SEEDS} seeds of {steps} steps. Matched: {ppo.N_ENVS} environments, rollouts of {ppo.STEPS} steps, "
        f"{ppo.EPOCHS} epochs of {ppo.MINIBATCHES} minibatches,",
        f"{ppo.HIDDEN} hidden units, learning rate {RATE}, entropy coefficient 0.01. The rest is a library's default. "
        "A run's outcome", "is its mean return by rollout, over the whole training or over its last tenth.", "",
        "Stated before the runs: the margin, a tenth of the range of returns, and the chance to show *not worse* if",
        "there is no difference, with the standard deviations of earlier runs.", "",
        "| task | margin | chance, native and torch | chance, ours and SB3 |", "|---|---|---|---|",
        *(f"| {task} | {margin:g} | {_chance(margin, *SDS[task][:1] * 2):.3f} | {_chance(margin, *SDS[task]):.3f} |"
          for task, margin in MARGINS.items()), "",
        "*Not worse*: the lower limit of the 95 % interval of the difference (Welch) is above minus the margin.", "",
        "| task | outcome | comparison | means | difference | not worse |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for one in record["curves"]:
        for name, part in PARTS.items():
            outcomes = {learner: _outcomes(of, part) for learner, of in one["curves"].items()}
            lines += [_row(one["task"], name, outcomes, pair) for pair in (("native", "torch"), ("native", "SB3"))
                      if pair[1] in outcomes]  # fmt: skip
    return lines


def _row(task: str, part: str, outcomes: dict[str, Any], pair: tuple[str, str]) -> str:
    a, b = (outcomes[name] for name in pair)
    warnings.simplefilter("ignore", RuntimeWarning)  # of runs that all reach the highest return
    limits = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return (
        f"| {task} | {part} | {' - '.join(pair)} | {a.mean():.1f}, {b.mean():.1f} | {a.mean() - b.mean():+.1f} "
        f"[{limits.low:+.1f}, {limits.high:+.1f}] | {'yes' if limits.low > -MARGINS[task] else 'no'} |"
    )


def _chance(margin: float, sd_a: float, sd_b: float) -> float:
    """Return the probability that the lower limit is above -margin if there is no difference; normal approximation."""
    error = float(np.hypot(sd_a, sd_b)) / SEEDS**0.5
    return float(stats.norm.cdf(margin / error - stats.norm.ppf(0.975)))
