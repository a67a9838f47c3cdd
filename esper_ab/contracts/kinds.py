"""Kinds of task: how a task's name tells its kind, and which settings a kind reads."""

from __future__ import annotations

GROWTH, GYMNASIUM, TRAINER = "growth", "gymnasium", "trainer"
GYM_PREFIX, TRAINER_PREFIX = "gym:", "trainer:"
ENV_REWARD = "env"  # the reward mode that is the environment's own reward
REWARDS: dict[str, tuple[str, ...]] = {GYMNASIUM: (ENV_REWARD,), TRAINER: ()}  # of kinds that have no folder of them
CONTROLLERS = {GYMNASIUM: ("random",), TRAINER: (TRAINER,)}
_WORDS = {GROWTH: "growing networks", GYMNASIUM: "Gymnasium environments", TRAINER: "trainers of your own"}
_READ_BY_ALL = ("reward.mode",)
_OF_GROWTH = (
    "growth.", "reward.", "policy.bias_", "controller.schedule", "slots", "data_dir", "exam", "arithmetic.kernel",
)  # fmt: skip
_OF_GYMNASIUM = ("gym.", "reward.params", "outcome", "outcome_better")


def kind_of_task(task: str) -> str:
    """Return the kind of a task as it is written in plans: `gym:ID` and `path/env.py:make` are of Gymnasium."""
    if task.startswith(TRAINER_PREFIX):
        return TRAINER
    return GYMNASIUM if ":" in task else GROWTH


def reader_of(key: str) -> str:
    """Return the only kind that reads the setting `key`; "" where all do."""
    if key in _READ_BY_ALL:
        return ""
    if key.startswith(_OF_GYMNASIUM):
        return GYMNASIUM
    return GROWTH if key.startswith(_OF_GROWTH) else ""


def words(kind: str) -> str:
    """Return what tasks of `kind` are, in words."""
    return _WORDS[kind]
