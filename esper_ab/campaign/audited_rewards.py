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
        group.name: [
            scored_reward
            for scored_reward in reward_audit.answer.scored
            if _is(scored_reward, group.settings.reward, codes)
        ]
        for group in learning
    }
    covered_rewards = tuple(
        {
            scored_reward.reward.name: scored_reward
            for group_rewards in by_group.values()
            for scored_reward in group_rewards
        }.values()
    )
    if not covered_rewards:
        audited = ", ".join(scored_reward.reward.name for scored_reward in reward_audit.answer.scored)
        raise UsageError(
            "--reward-audit: no group learns from an audited reward with the constants of the audit; audited: "
            f"{audited}"
        )
    lacking_groups = ", ".join(name for name, group_rewards in by_group.items() if not group_rewards)
    notes = (f"The reward audit does not cover {lacking_groups}.",) if lacking_groups else ()
    covered_audit = replace(
        reward_audit,
        question=replace(
            reward_audit.question, rewards=tuple(scored_reward.reward for scored_reward in covered_rewards)
        ),
        answer=replace(reward_audit.answer, scored=covered_rewards),
    )
    return covered_audit, notes


def _list_differences(reward_audit: RewardAudit, experiment: ResolvedExperiment, learning: list[Group]) -> list[str]:
    """List the differences between the audited hosts and those of the experiment."""
    question = reward_audit.question
    audited = {"task": question.task, "steps": question.steps, "slots": reward_audit.answer.slots}
    planned_values = {"task": experiment.task, "steps": experiment.steps, "slots": experiment.slots}
    differences = [
        f"{key} was {audited[key]} and is {planned_values[key]}"
        for key in planned_values
        if audited[key] != planned_values[key]
    ]
    for group in learning:
        growth = group.settings.growth
        names = [name for name in growth.__struct_fields__ if getattr(growth, name) != getattr(question.growth, name)]
        differences += [
            f"growth.{name} was {getattr(question.growth, name)} and is {getattr(growth, name)} in {group.name}"
            for name in names
        ]
    return differences


def _is(scored_reward: Scored, reward: RewardSettings, codes: Mapping[str, str]) -> bool:
    """Whether `reward` is the reward in `scored_reward`, with equal constants and the same mode or function code."""
    planned_mode = reward.mode
    scored_settings = scored_reward.reward.settings
    if replace(scored_settings, mode=planned_mode) != reward:
        return False
    sha256 = codes.get(planned_mode, "")
    same_code = (
        scored_reward.sha256 == sha256 and scored_settings.mode.rpartition(":")[2] == planned_mode.rpartition(":")[2]
    )
    return same_code if ":" in planned_mode else scored_settings.mode == planned_mode
