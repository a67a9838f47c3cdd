"""What the learners have in common: a budget, settings with a name, and what is left when they have trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Settings = Literal["matched", "default"]
STEPS, EPISODES, RNG_SEEDS = 100_000, 20, 10  # of training; of an evaluation; runs per cell
MATCHED_ENVS, MATCHED_STEPS, MATCHED_HIDDEN = 8, 128, 64
MATCHED = (
    "8 environments, 128 steps per rollout, learning rate 0.001, 4 epochs, 4 minibatches, clip 0.2, gamma 0.99, "
    "lambda 0.95, entropy 0.01, value loss 0.25 times the squared error, gradient norm 0.5, 64 hidden units, nothing "
    "annealed, no limit on KL"
)


@dataclass(frozen=True)
class Trained:
    """A learner after its training."""

    steps: int  # of environments
    cpu_s: float  # of its training alone
    play: Callable[[int, bool], list[float]]  # episodes, greedy or sampled -> their returns


Train = Callable[[str, Settings, int, int], Trained]  # task, settings, rng seed, steps
