"""The kinds of task, and what the name of a task says about its kind."""

from __future__ import annotations

GROWTH = "growth"
GYMNASIUM = "gymnasium"
TRAINER = "trainer"
GYM_PREFIX = "gym:"
TRAINER_PREFIX = "trainer:"
INFO_PREFIX = "info:"  # of an outcome that is an entry of the last step's info
ENV_REWARD = "env"  # reward mode: the environment's own reward
REWARDS: dict[str, tuple[str, ...]] = {GYMNASIUM: (ENV_REWARD,), TRAINER: ()}  # for kinds without a folder of rewards
CONTROLLERS = {GYMNASIUM: ("random",), TRAINER: (TRAINER,)}


def kind_of_task(task: str) -> str:
    """Return the kind of a task from its name in plans; `gym:ID` and `path/env.py:make` are of kind gymnasium."""
    if task.startswith(TRAINER_PREFIX):
        return TRAINER
    return GYMNASIUM if ":" in task else GROWTH


def is_own_outcome(outcome: str) -> bool:
    """Whether a Gymnasium task's outcome is a user's function, which may read a whole episode."""
    return bool(outcome) and not outcome.startswith(INFO_PREFIX)
