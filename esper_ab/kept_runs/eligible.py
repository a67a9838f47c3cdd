"""The groups whose runs may be kept and reused, and for every other one the reason why not, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.trainer import is_command
from esper_ab.contracts.wording import listed
from esper_ab.design.guardrails import CRASHES, WALL_TIME
from esper_ab.journal.events import KeptGroup
from esper_ab.kept_runs.conditions import PACKAGES, conditions_of
from esper_ab.kept_runs.identity import identity_of
from esper_ab.plan.plan import Plan
from esper_ab.plan.positions import positions_could_matter_by

if TYPE_CHECKING:
    from esper_ab.code_trees.sealing import SealedCode

_TIMES = ("s", "ms", "us", "ns", "min", "h", "sec", "second", "seconds", "minute", "minutes", "hour", "hours")


class NotEligible(ValueError):
    """Runs can be neither kept nor reused; the text is a predicate of them, such as "repeat only on GPUs"."""


def eligible_groups(
    plan: Plan, machine: Machine, code: SealedCode | None, unsealed: Sequence[Path]
) -> tuple[dict[str, KeptGroup], tuple[str, ...]]:
    """Return the groups whose runs may be kept, and why those of others may not.

    `unsealed`: folders and files that are no part of the user's code.
    """
    try:
        _check_place(plan, machine)
        _check_measures(plan)
        code_by_group = _code_by_group(plan, code, unsealed)
    except NotEligible as problem:
        return {}, (f"No run is kept or reused: {problem}.",)
    groups: dict[str, KeptGroup] = {}
    problems: dict[str, list[str]] = {}
    for spec in plan.blocks[0].runs:
        name = spec.ref.group_id
        try:
            conditions = conditions_of(plan, machine, name)
            repeats = _repeats(plan, machine, name, conditions)
        except NotEligible as problem:
            problems.setdefault(str(problem), []).append(name)
            continue
        measures = plan.design.measures.names
        identity = identity_of(spec, measures, code_by_group.get(name, ""), tuple(_folders(plan)))
        groups[name] = KeptGroup(identity=identity, conditions=conditions, repeats=repeats)
    sentences = [f"Runs of {listed(names)} are neither kept nor reused: {text}." for text, names in problems.items()]
    return groups, tuple(sentences)


def _check_place(plan: Plan, machine: Machine) -> None:
    """Raise NotEligible if workers are on other machines, whose kind and packages are not known here."""
    used_devices = {device for lane in plan.lanes for device in lane.devices}
    if any(device.node for device in machine.devices if device.name in used_devices):
        raise NotEligible("workers are on other machines, whose packages are not known here")


def _check_measures(plan: Plan) -> None:
    """Raise NotEligible for measures that a run of another day cannot have."""
    sources = {guardrail.source for guardrail in plan.design.guards.items} if plan.design.guards is not None else set()
    if WALL_TIME in sources:
        raise NotEligible("the guardrail on wall_s compares times, which are only comparable within an experiment")
    if CRASHES in sources:
        raise NotEligible("the guardrail on crashes counts failed runs, which are not kept")


def _repeats(plan: Plan, machine: Machine, group: str, conditions: Mapping[str, str]) -> bool:
    """Return whether the runs of a group repeat to the bit.

    Raises NotEligible if they do not, and cannot be told to come about as they did.
    """
    facts = plan.trainer
    if facts is None:
        reason = positions_could_matter_by(plan.experiment, machine)
        if reason:
            raise NotEligible(f"they may not repeat to the bit, because {reason}")
        return True
    repeats = facts.states[group].repeats if group in facts.states else facts.repeats
    if repeats:
        return True
    outcome = plan.design.outcome
    if outcome.unit in _TIMES or outcome.unit.endswith(("/s", "/min", "/h")):
        raise NotEligible(f"their outcome is measured in {outcome.unit}, which depends on the machine's load")
    if is_command(plan.experiment.trainer) and group not in facts.states:
        raise NotEligible(
            "a seed does not repeat to the bit, and only with states of the code all files of a command are known"
        )
    if not conditions[PACKAGES]:
        raise NotEligible("a seed does not repeat to the bit, and the command does not show which Python it runs")
    return False


def _code_by_group(plan: Plan, code: SealedCode | None, unsealed: Sequence[Path]) -> dict[str, str]:
    """Return what identifies the code of each group's trainer; {} if the task is none of the user's."""
    facts = plan.trainer
    if facts is None:
        return {}
    names = [spec.ref.group_id for spec in plan.blocks[0].runs]
    if code is not None:
        return {state.group: code.tree_hash(state.sealed) for state in code.states}
    if not is_command(plan.experiment.trainer):
        return dict.fromkeys(names, facts.sha256)
    from esper_ab.code_trees.sealing import folder_hash  # a command's own files are not all known

    folder = Path(plan.experiment.trainer_folder)
    try:
        return dict.fromkeys(names, folder_hash(folder, unsealed))
    except UsageError as error:
        raise NotEligible(f"the files around the command cannot be identified: {error}") from None


def _folders(plan: Plan) -> Iterator[str]:
    """Yield the folders that the reference of a trainer may begin with."""
    facts = plan.trainer
    if facts is not None:
        yield from (state.top for state in facts.code_states.values())
        yield facts.root
        yield plan.experiment.trainer_folder
