"""Which plans can be pooled: those that fix the same, on different rng seeds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from esper_ab.contracts.settings import GroupSettings
from esper_ab.design.design import Design
from esper_ab.plan.plan import EarlierExperiment, Plan
from esper_ab.settings.experiment import ResolvedExperiment


class FixedRule(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a plan fixed, except the rng seed, and the names and the order of the groups."""

    compared: frozenset[frozenset[str]]  # pairs of groups
    directed: frozenset[tuple[str, str]]  # the pairs as named, if the plan asks whether the first group is not worse
    design: Design  # without its comparisons
    states_of_code: frozenset[tuple[str, str]]  # (group, state), if the groups have one each
    experiment: ResolvedExperiment  # without its name, rng seed, groups and their states of the code
    trainer: str  # sha256 of the user's trainer; "": none, or not known


def compared_pairs(plan: Plan, names: Mapping[str, str]) -> frozenset[frozenset[str]]:
    """Return the pairs of groups that a plan compares; `names`: its own name of a group -> the common one."""
    return frozenset(frozenset(names[group] for group in contrast.groups) for contrast in plan.design.comparisons)


def fixed_rule(plan: Plan, names: Mapping[str, str]) -> FixedRule:
    """Return what the plan fixed; `names`: its own name of a group -> the common one."""
    experiment = plan.experiment
    directed: frozenset[tuple[str, str]] = frozenset()
    if plan.design.claim == "not-worse":
        directed = frozenset((names[contrast.a], names[contrast.b]) for contrast in plan.design.comparisons)
    return FixedRule(
        compared=compared_pairs(plan, names),
        directed=directed,
        design=msgspec.structs.replace(plan.design, comparisons=()),
        states_of_code=frozenset((names[group], state) for group, state in experiment.states_of_code.items()),
        experiment=msgspec.structs.replace(
            experiment, name="", rng_seed=0, groups=(), code=(), control="", untested=()
        ),
        trainer=_trainer_sha256(plan),
    )


def _trainer_sha256(plan: Plan) -> str:
    """Return the sha256 of the files of the user's trainer; "" without one, or if its files are not known."""
    return "" if plan.trainer is None else plan.trainer.sha256


def declared(plan: Plan, original: Plan) -> Plan:
    """Return `plan` with the declaration that it is pooled with `original`, if it is the same on another rng seed.

    It is then also pooled with the experiments with which `original` is pooled.
    """
    earlier = (*original.earlier, _named(original))
    if not is_fresh(plan, earlier) or not replicates(plan, original):
        return plan
    return msgspec.structs.replace(plan, pooled_with=earlier)


def is_fresh(plan: Plan, earlier: Iterable[EarlierExperiment]) -> bool:
    """True if the rng seed of `plan` is that of no earlier experiment."""
    return plan.experiment.rng_seed not in {experiment.rng_seed for experiment in earlier}


def replicates(plan: Plan, original: Plan) -> bool:
    """True if `plan` fixes the same as `original`, for groups with the same names, and compares them."""
    if not plan.design.comparisons or _settings(plan) != _settings(original):
        return False
    names = {name: name for name in _settings(plan)}
    return fixed_rule(plan, names) == fixed_rule(original, names)


def _named(plan: Plan) -> EarlierExperiment:
    experiment = plan.experiment
    return EarlierExperiment(name=experiment.name, digest=plan.digest, rng_seed=experiment.rng_seed)


def _settings(plan: Plan) -> dict[str, GroupSettings]:
    return {group.name: group.settings for group in plan.experiment.groups}
