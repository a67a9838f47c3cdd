"""Settings that can be read and would do nothing, or nothing that is meant: each is refused with the remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.kinds import readers_of, words
from esper_ab.settings.assignments import Assignment, is_default
from esper_ab.settings.experiment import AskedExperiment, Group


def refuse_without_effect(
    common: Iterable[Assignment], cell: Collection[Assignment], own: Mapping[str, Collection[str]]
) -> None:
    """UsageError for a setting of all groups that every group overrides; of a grid, that any does.

    `cell`: those of `common` that are one value of a grid; `own`: the keys that each group sets for itself.
    """
    for assignment in common:
        overriding = [group for group, keys in own.items() if assignment.key in keys]
        if len(overriding) == len(own):
            raise UsageError(
                f"{assignment.origin} has no effect: every group has its own {assignment.key}; leave it out"
            )
        if overriding and assignment in cell:
            raise UsageError(
                f"{assignment.origin}: group {overriding[0]!r} has its own {assignment.key}, and in a cell of a grid "
                "all groups have the same; leave one of the two out"
            )


def refuse_unread(assignment: Assignment, kind: str, task: str) -> None:
    """UsageError for a setting that this kind does not read, unless its value is the default, which changes nothing."""
    readers = readers_of(assignment.key)
    if readers and kind not in readers and not is_default(assignment):
        kinds = " and ".join(words(reader) for reader in readers)
        raise UsageError(
            f"{assignment.origin}: {assignment.key} is a setting of {kinds}; task {task} does not read it, leave it out"
        )


def refuse_reward_as_outcome(outcome: str, groups: Iterable[Group]) -> None:
    """UsageError where the outcome is what a group trains on."""
    for group in groups:
        if outcome and outcome == group.settings.reward.mode:
            raise UsageError(
                Setting("outcome", outcome), f" is the reward of group {group.name!r}: a reward says nothing about who "
                "is better; name what the task is about, or leave it out for the environment's own return",
            )  # fmt: skip


def refuse_screening_without_control(experiment: AskedExperiment) -> None:
    """UsageError for a screening that has no control, or one that learns."""
    fixed = [group.name for group in experiment.groups if not group.settings.has_policy]
    if experiment.screening and experiment.control not in fixed:
        there = ", ".join(fixed) or "none is there: add random"
        raise UsageError(
            Setting("screening"), " judges against the ", Setting("control"),
            f", which is a group that does not learn ({there})",
        )  # fmt: skip
