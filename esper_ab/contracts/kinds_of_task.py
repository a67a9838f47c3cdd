"""The kinds of task: the kind of a task from its name, and the rules of a kind for one concern of the control plane."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, TypeVar

from esper_ab.contracts import catalog

KINDS = "esper_ab.kinds"
GROWTH = "growth"
GYMNASIUM = "gymnasium"
TRAINER = "trainer"
GYM_PREFIX = "gym:"
INFO_PREFIX = "info:"  # of an outcome that is an entry of the last step's info
ENV_REWARD = "env"  # reward mode: the environment's own reward


class Concern:
    """Base of the rules of a kind of task for one concern; the defaults of each subclass are for kinds without rules.

    A kind implements a subclass in the file `file` of its folder in esper_ab/kinds; the file defines `KIND`, an object.
    """

    file: ClassVar[str]


C = TypeVar("C", bound=Concern)


@cache
def kinds() -> tuple[str, ...]:
    """Return the names of all kinds of task, sorted."""
    return catalog.folders(KINDS)


def of_kind(kind: str, concern: type[C]) -> C:
    """Return the rules of `kind` for a concern, or the defaults; unknown kinds, as in foreign journals, have those."""
    rules: C | None = _rules(kind, concern.file)
    if rules is None:
        return concern()
    return rules


@cache
def _rules(kind: str, file: str) -> Any:
    folder = f"{KINDS}.{kind}"
    if kind not in kinds() or file not in catalog.names(folder):
        return None
    return catalog.entry(folder, file, "KIND")


def kind_of_task(task: str) -> str:
    """Return the kind of a task from its name in plans.

    `NAME:REST` is of kind NAME if there is one; `gym:ID` and `path/env.py:make` are of kind gymnasium.
    """
    prefix, colon, _ = task.partition(":")
    if not colon:
        return GROWTH
    if prefix in kinds() and prefix not in (GROWTH, GYMNASIUM):  # whose tasks have other names
        return prefix
    return GYMNASIUM


def may_be_function(task: str) -> bool:
    """Whether a task may be a user's function, `path/env.py:make` or `module:make`.

    It is none if it is of a kind that its name begins with. A module may be called trainer, because no task that users
    write begins with that kind.
    """
    return kind_of_task(task) in (GYMNASIUM, TRAINER) and not task.startswith(GYM_PREFIX)


def is_own_outcome(outcome: str) -> bool:
    """Whether a Gymnasium task's outcome is a user's function, which may read a whole episode."""
    return bool(outcome) and not outcome.startswith(INFO_PREFIX)
