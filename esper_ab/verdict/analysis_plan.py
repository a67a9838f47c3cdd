"""The plan made before the first run: groups, replicates, tasks, margins, looks and bounds. Pure.

`esper-ab design` saves such a plan in a file. For an experiment directory, the plan is derived from the experiment's
plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from math import fsum
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from esper_ab.contracts.claim import Claim
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.settings import Settings, Variances
from esper_ab.design.check import check_futility, check_looks, check_variances
from esper_ab.design.design import (
    Boundary,
    Contrast,
    Design,
    boundaries_of,
    contrasts,
    default_looks,
    futility_of,
)
from esper_ab.design.moderation import moderation, prior_df_of
from esper_ab.design.non_inferiority import NonInferiority, check_claim, non_inferiority_of
from esper_ab.design.possible_outcomes import check_possible
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.scale import MEAN, OF_MEAN, Scale
from esper_ab.verdict.trials import Trials


class Rule(Settings, frozen=True, kw_only=True):
    """The rule by which comparisons are decided; its fields are named like the settings of a launch."""

    control: str = ""  # the group that all others are compared with; "": all pairs
    alpha: float = 0.05
    looks: tuple[int, ...] = ()  # (): the default ones
    early_stop: bool = True
    futility: float = 0.0
    claim: Claim = "difference"
    variances: Variances = "own"
    shape: Literal["same", "any"] = "same"  # any: claims must hold whatever the shapes of the groups' distributions


class AnalysisPlan(Settings, frozen=True, kw_only=True, dict=True):
    """Everything that is fixed before the first run."""

    groups: tuple[str, ...]
    replicates: tuple[str, ...]  # seeds or pairs, in the order in which they are run and judged
    scales: tuple[Scale, ...]  # one per task
    design: Design  # of all tasks together
    cells: tuple[str, ...] = ()  # settings to choose from: each group gets its own best one; (): there is no choice
    choosing: tuple[str, ...] = ()  # seeds on which they are chosen; disjoint from `replicates`
    # Of an evaluation of two checkpoints, whose replicates are items. Left out of other plans, whose digests so stay.
    trials: Trials | UnsetType = UNSET

    @cached_property
    def digest(self) -> str:
        """sha256 of the plan; for a plan read from a file, the sha256 that the file states.

        Fields that a later version adds must have defaults, so that digests of older plans stay the same.
        """
        return sha256_of(msgspec.json.encode(self))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks; ("",) if there are none."""
        return tuple(scale.task for scale in self.scales)

    @property
    def paired(self) -> bool:
        """True if the runs of one replicate form a pair."""
        return self.design.paired

    @property
    def evaluation(self) -> Trials | None:
        """The trials, if the plan evaluates two checkpoints; None for a plan of runs."""
        return None if isinstance(self.trials, UnsetType) else self.trials

    def design_of(self, contrast: Contrast) -> Design:
        """Return the design with the margin, outcome and worst outcome of one comparison."""
        if len(self.scales) == 1:
            return self.design
        for scale in self.scales:
            if scale.task == contrast.task:
                return _replace_scale(self.design, scale, scale.worst)
        return _replace_scale(self.design, _scale_of_mean(self.design, self.scales), _worst_mean(self.scales))


def _scale_of_mean(design: Design, scales: Sequence[Scale]) -> Scale:
    """Return the scale of a mean over tasks, with its best possible value if claims must hold for any shape."""
    if not design.any_shape:
        return OF_MEAN
    best_values = [scale.outcome.sign * scale.best / scale.margin for scale in scales if scale.best is not None]
    outcome = msgspec.structs.replace(OF_MEAN.outcome, high=fsum(best_values) / len(best_values))
    return msgspec.structs.replace(OF_MEAN, outcome=outcome)


def _replace_scale(design: Design, scale: Scale, worst_outcome: float | None) -> Design:
    return msgspec.structs.replace(design, margin=scale.margin, measures=scale.measures, worst=worst_outcome)


def make_plan(
    groups: Sequence[str],
    replicates: Sequence[str],
    scales: Sequence[Scale],
    rule: Rule,
    *,
    cells: Sequence[str] = (),
    choosing: Sequence[str] = (),
) -> AnalysisPlan:
    """Make a plan for validated names. Raises UsageError if the rule cannot be applied to them."""
    design = design_over(groups, len(replicates), scales, rule)
    return AnalysisPlan(
        groups=tuple(groups),
        replicates=tuple(replicates),
        scales=tuple(scales),
        design=design,
        cells=tuple(cells),
        choosing=tuple(choosing),
    )


def design_over(groups: Sequence[str], replicates: int, scales: Sequence[Scale], rule: Rule) -> Design:
    """Make the design of all comparisons in every task of `scales` and, with several tasks, of their mean."""
    compared_in_task = len(contrasts(groups, rule.control))
    _check_rule(groups, replicates, rule)
    check_variances(rule.variances, compared_in_task)
    if rule.shape == "any":
        for scale in scales:
            check_possible(scale.outcome, scale.worst, (SettingName("worst"), SettingName("best")), scale.task)
    compared_pairs: list[Contrast] = []
    for scale in scales:
        compared_pairs += contrasts(groups, rule.control, scale.task)
    overall_scale = scales[0]
    if len(scales) > 1:
        compared_pairs += contrasts(groups, rule.control, MEAN)
        overall_scale = OF_MEAN
    looks = rule.looks or default_looks(replicates, rule.claim)
    sides = ((0, 1),) * replicates
    variances = moderation(rule.variances, compared_in_task)
    prior_df = prior_df_of(variances)
    boundaries: tuple[Boundary, ...] = ()
    futility = None
    not_worse: NonInferiority | UnsetType = UNSET
    if replicates >= LEAST_PAIRS:
        boundaries = boundaries_of(rule.alpha, len(compared_pairs), sides, 1, looks, prior_df)
        if rule.claim == "not-worse":
            not_worse = non_inferiority_of(rule.alpha, len(compared_pairs), sides, 1, looks, prior_df)
        if rule.futility:
            futility = futility_of(rule.futility, sides, 1, looks, prior_df)
    return Design(
        outcome_over="given",
        test="t",
        alpha=rule.alpha,
        margin=overall_scale.margin,
        measures=overall_scale.measures,
        comparisons=tuple(compared_pairs),
        positions=1,
        adjusted=False,
        early_stop=rule.early_stop,
        looks=looks,
        boundaries=boundaries,
        anytime_after=None,
        evidence=1.0 / rule.alpha,
        futility=futility,
        worst=overall_scale.worst,
        not_worse=not_worse,
        variances=variances,
        shape="any" if rule.shape == "any" else UNSET,
    )


def _worst_mean(scales: Sequence[Scale]) -> float | None:
    """Return the mean of all worst outcomes, each in units of its task's margin; None unless all are declared."""
    worst_values = [scale.outcome.sign * scale.worst / scale.margin for scale in scales if scale.worst is not None]
    if len(worst_values) < len(scales):
        return None
    return fsum(worst_values) / len(worst_values)


def sha256_of(content: bytes) -> str:
    """Return the sha256 of `content` in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _check_rule(groups: Sequence[str], replicates: int, rule: Rule) -> None:
    if rule.control and rule.control not in groups:
        raise UsageError(SettingName("control", rule.control), f": no such group; the groups are {', '.join(groups)}")
    if not 0.0 < rule.alpha < 0.5:
        raise UsageError(SettingName("alpha", rule.alpha), ": it must be above 0 and below 0.5")
    check_looks(rule.looks, replicates, rule.claim)
    check_claim(
        rule.claim,
        groups=groups,
        control=rule.control,
        seeds=replicates,
        looks=rule.looks,
        futility=rule.futility,
    )
    if rule.futility:
        looks = rule.looks or default_looks(replicates)
        check_futility(rule.futility, seeds=replicates, looks=looks, early_stop=rule.early_stop)
