"""Kinds of task: how a task's name tells its kind, and which settings a kind reads."""

from __future__ import annotations

GROWTH, GYMNASIUM, TRAINER = "growth", "gymnasium", "trainer"
GYM_PREFIX, TRAINER_PREFIX = "gym:", "trainer:"
INFO_PREFIX = "info:"  # of an outcome that is an entry of the last step's info
ENV_REWARD = "env"  # the reward mode that is the environment's own reward
REWARDS: dict[str, tuple[str, ...]] = {GYMNASIUM: (ENV_REWARD,), TRAINER: ()}  # of kinds that have no folder of them
CONTROLLERS = {GYMNASIUM: ("random",), TRAINER: (TRAINER,)}
_WORDS = {GROWTH: "growing networks", GYMNASIUM: "Gymnasium environments", TRAINER: "trainers of your own"}
_READ_BY_ALL = ("reward.mode", "outcome_over")
_READERS: dict[tuple[str, ...], tuple[str, ...]] = {  # beginnings of keys, the first that fits -> kinds that read them
    ("gym.", "reward.params"): (GYMNASIUM,),
    ("rehearsal", "trainer_folder", "outcome_unit"): (TRAINER,),
    ("outcome",): (GYMNASIUM, TRAINER),
    ("growth.", "reward.", "policy.bias_", "controller.schedule", "slots", "data_dir", "screening",
    "arithmetic.kernel"):
        (GROWTH,),
}  # fmt: skip


def kind_of_task(task: str) -> str:
    """Return the kind of a task as it is written in plans: `gym:ID` and `path/env.py:make` are of Gymnasium."""
    if task.startswith(TRAINER_PREFIX):
        return TRAINER
    return GYMNASIUM if ":" in task else GROWTH


def is_own_outcome(outcome: str) -> bool:
    """Return whether a Gymnasium task's outcome is a function of the user's own, which may read a whole episode."""
    return bool(outcome) and not outcome.startswith(INFO_PREFIX)


def readers_of(key: str) -> tuple[str, ...]:
    """Return the kinds that read the setting `key`; () where all do."""
    if key in _READ_BY_ALL:
        return ()
    return next((kinds for beginnings, kinds in _READERS.items() if key.startswith(beginnings)), ())


def words(kind: str) -> str:
    """Return what tasks of `kind` are, in words."""
    return _WORDS[kind]
