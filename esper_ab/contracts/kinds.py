"""Kinds of task: how a task's name tells its kind."""

from __future__ import annotations

GROWTH, GYMNASIUM, TRAINER = "growth", "gymnasium", "trainer"
GYM_PREFIX, TRAINER_PREFIX = "gym:", "trainer:"
INFO_PREFIX = "info:"  # of an outcome that is an entry of the last step's info
ENV_REWARD = "env"  # the reward mode that is the environment's own reward
REWARDS: dict[str, tuple[str, ...]] = {GYMNASIUM: (ENV_REWARD,), TRAINER: ()}  # of kinds that have no folder of them
CONTROLLERS = {GYMNASIUM: ("random",), TRAINER: (TRAINER,)}


def kind_of_task(task: str) -> str:
    """Return the kind of a task as it is written in plans: `gym:ID` and `path/env.py:make` are of Gymnasium."""
    if task.startswith(TRAINER_PREFIX):
        return TRAINER
    return GYMNASIUM if ":" in task else GROWTH


def is_own_outcome(outcome: str) -> bool:
    """Return whether a Gymnasium task's outcome is a function of the user's own, which may read a whole episode."""
    return bool(outcome) and not outcome.startswith(INFO_PREFIX)
