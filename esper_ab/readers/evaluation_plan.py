"""A plan for the evaluation of two checkpoints with 0/1 outcomes: looks, exact bounds, and a blind order of trials."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.margins import check_margin
from esper_ab.contracts.wording import counted
from esper_ab.design.design import Boundary, Design, contrasts
from esper_ab.design.exact_looks import EARLIEST_LOOK, MOST_REPLICATES, Shape, exact_bounds, exact_looks
from esper_ab.design.trial_order import draw_order
from esper_ab.readers.external_plan import check_names
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule
from esper_ab.verdict.scale import Scale
from esper_ab.verdict.trials import Trials


def make_evaluation_plan(
    groups: Sequence[str], items: Sequence[str], scale: Scale, rule: Rule, *, paired: bool, seed: int
) -> AnalysisPlan:
    """Make a plan in which both checkpoints try every item (`paired`), or as many trials each that form no pairs.

    A lost outcome of the group that looks better counts as the worse of 0 and 1. `seed`: of the order. Raises
    UsageError if the plan is impossible.
    """
    check_names("group", groups, least_count=2)
    check_names("item", items, least_count=EARLIEST_LOOK)
    if len(groups) != 2:
        raise UsageError(f"a plan for checkpoints compares two groups, not {len(groups)}; write a plan per comparison")
    if len(items) > MOST_REPLICATES:
        raise UsageError(
            f"{counted(len(items), 'item')}: exact bounds exist for up to {MOST_REPLICATES}; with more, evaluate "
            "all of them and use `esper-ab judge` without a plan, which takes one look"
        )
    if not 0.0 < rule.alpha < 0.5:
        raise UsageError(SettingName("alpha", rule.alpha), ": it must be above 0 and below 0.5")
    outcome = msgspec.structs.replace(scale.outcome, low=0.0, high=1.0)
    check_margin(outcome, scale.margin)
    worst_score = 1.0
    if outcome.sign > 0.0:
        worst_score = 0.0
    scale = msgspec.structs.replace(scale, outcome=outcome, worst=worst_score)
    arms, order = draw_order(len(items), (groups[0], groups[1]), seed)
    return AnalysisPlan(
        groups=tuple(groups),
        replicates=tuple(items),
        scales=(scale,),
        design=_design(groups, len(items), scale, rule, paired=paired),
        trials=Trials(arms=arms, order=order, seed=seed),
    )


def _design(groups: Sequence[str], items: int, scale: Scale, rule: Rule, *, paired: bool) -> Design:
    looks = rule.looks or exact_looks(items)
    _check_looks(looks, items)
    shape: Shape = "paired" if paired else "unpaired"
    bounds = exact_bounds(shape, looks, rule.alpha)
    if not any(bounds):
        raise UsageError(f"{counted(items, 'item')} cannot show any difference at alpha {rule.alpha:g}; plan more")
    return Design(
        outcome_over="given",
        test="mcnemar" if paired else "z",
        alpha=rule.alpha,
        margin=scale.margin,
        measures=scale.measures,
        comparisons=contrasts(groups, ""),
        positions=1,
        adjusted=False,
        early_stop=rule.early_stop,
        looks=looks,
        boundaries=(Boundary(open=1, alpha=rule.alpha, nominal_p=bounds),),
        anytime_after=None,
        evidence=1.0 / rule.alpha,
        worst=scale.worst,
    )


def _check_looks(looks: Sequence[int], items: int) -> None:
    if list(looks) != sorted(set(looks)) or looks[-1] != items or looks[0] < EARLIEST_LOOK:
        raise UsageError(
            SettingName("looks", tuple(looks)),
            f": looks must ascend from {EARLIEST_LOOK} items or more and end at {items}, the number of items",
        )
