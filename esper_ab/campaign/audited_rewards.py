"""The part of a reward audit that concerns an experiment: rewards of its learning groups, if the hosts are the same."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.reward_audit import RewardAudit, Scored
from esper_ab.contracts.settings import RewardSettings
from esper_ab.settings.experiment import Group, ResolvedExperiment


def belonging(
    reward_audit: RewardAudit, experiment: ResolvedExperiment, machine: Machine
) -> tuple[RewardAudit, tuple[str, ...]]:
    """Return the audit with only the rewards of `experiment`, in group order, and a note on missing rewards.

    Raises UsageError if the audited hosts differ from those of `experiment`, or if none of the rewards was audited.
    """
    learning = [group for group in experiment.groups if group.settings.has_policy]
    differences = _list_differences(reward_audit, experiment, learning)
    if differences:
        raise UsageError(
            f"the audit of --reward-audit used different hosts: {'; '.join(differences)}; audit again with "
            "`esper-ab growth rewards`"
        )
    codes = {user.reference: user.sha256 for user in machine.user_rewards}
    by_group = {
        group.name: [scored for scored in reward_audit.answer.scored if _is(scored, group.settings.reward, codes)]
        for group in learning
    }
    kept = tuple({scored.reward.name: scored for several in by_group.values() for scored in several}.values())
    if not kept:
        audited = ", ".join(scored.reward.name for scored in reward_audit.answer.scored)
        raise UsageError(
            "--reward-audit: no group learns from an audited reward with the constants of the audit; audited: "
            f"{audited}"
        )
    lacking = ", ".join(name for name, several in by_group.items() if not several)
    notes = (f"The reward audit does not cover {lacking}.",) if lacking else ()
    own = replace(
        reward_audit,
        question=replace(reward_audit.question, rewards=tuple(scored.reward for scored in kept)),
        answer=replace(reward_audit.answer, scored=kept),
    )
    return own, notes


def _list_differences(reward_audit: RewardAudit, experiment: ResolvedExperiment, learning: list[Group]) -> list[str]:
    """List the differences between the audited hosts and those of the experiment."""
    asked = reward_audit.question
    audited = {"task": asked.task, "steps": asked.steps, "slots": reward_audit.answer.slots}
    planned = {"task": experiment.task, "steps": experiment.steps, "slots": experiment.slots}
    differences = [f"{key} was {audited[key]} and is {planned[key]}" for key in planned if audited[key] != planned[key]]
    for group in learning:
        growth = group.settings.growth
        names = [name for name in growth.__struct_fields__ if getattr(growth, name) != getattr(asked.growth, name)]
        differences += [
            f"growth.{name} was {getattr(asked.growth, name)} and is {getattr(growth, name)} in {group.name}"
            for name in names
        ]
    return differences


def _is(scored: Scored, reward: RewardSettings, codes: Mapping[str, str]) -> bool:
    """Whether `reward` is the reward in `scored`, with equal constants and the same mode or function code."""
    mine = reward.mode
    own = scored.reward.settings
    if replace(own, mode=mine) != reward:
        return False
    sha256 = codes.get(mine, "")
    same_code = scored.sha256 == sha256 and own.mode.rpartition(":")[2] == mine.rpartition(":")[2]
    return same_code if ":" in mine else own.mode == mine
