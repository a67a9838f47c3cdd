"""What identifies the code of a user's that a plan trains with. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.plan.plan import Plan
from esper_ab.settings.circumstances import TRAINER_SOURCE, source_of_trainer


def sources_of_rewards(plan: Plan) -> dict[str, str]:
    """Return the hashes of the user's reward functions, because a path does not identify their code."""
    codes = (code for block in plan.blocks for spec in block.runs for code in spec.reward_code)
    return _named((code.reference, code.sha256) for code in codes)


def sources_of_plan(plan: Plan) -> dict[str, str]:
    """Return what identifies the files of the user's trainer and rewards, as they were planned."""
    return _trainer(plan.trainer) | sources_of_rewards(plan)


def sources_on(machine: Machine) -> dict[str, str]:
    """Return the same of the trainer and the rewards that the preflight was asked about."""
    return _trainer(machine.trainer) | _named((reward.reference, reward.sha256) for reward in machine.user_rewards)


def _trainer(facts: TrainerFacts | None) -> dict[str, str]:
    return {} if facts is None else {TRAINER_SOURCE: source_of_trainer(facts)}


def _named(rewards: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {f"source of {reference}": sha256 or "unknown" for reference, sha256 in rewards}
