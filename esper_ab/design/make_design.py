"""Make the design of an experiment that `launch` runs, from its settings and the orders of its blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from esper_ab.contracts.measures import TaskMeasures
from esper_ab.design.counterbalance import Sides, draws_positions
from esper_ab.design.design import (
    Boundary,
    Design,
    Futility,
    adjusts,
    boundaries_of,
    comparisons,
    futility_of,
    looks_of,
)
from esper_ab.design.guardrails import Guardrails, guardrails_of
from esper_ab.design.moderation import moderation, prior_df_of
from esper_ab.design.non_inferiority import NonInferiority, non_inferiority_of
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.stats.least_pairs import LEAST_PAIRS


@dataclass
class _Bounds:
    """The bounds of a design; these are those of a plan in which no look can decide."""

    boundaries: tuple[Boundary, ...] = ()
    futility: Futility | None = None
    not_worse_p: tuple[float, ...] = ()  # one-sided, of the claim not-worse
    own_p: tuple[float, ...] = ()  # two-sided, at the first share of alpha, of guardrails


def make_design(
    experiment: ResolvedExperiment,
    orders: Sequence[tuple[str, ...]],
    *,
    measures: TaskMeasures,
    positions_matter: bool = True,
    worst: float | None = None,
) -> Design:
    """Make the design of `experiment`; the block of replicate r starts its groups in the order `orders[r]`.

    `positions_matter`: whether a record may depend on its lane or start order; if not, nothing is adjusted for.
    `worst`: the declared worst outcome, if there is one.
    """
    compared_pairs = comparisons(experiment)
    positions = len(experiment.groups)
    looks: tuple[int, ...] = ()
    if compared_pairs:  # else no run waits for a look, because nothing is decided
        looks = looks_of(experiment)
    # Effects of positions aliased with the groups cannot be removed; the audit then says so and blocks the verdict.
    is_adjusted = positions_matter and _adjusts_by_default(experiment, orders, looks)
    bounds = _Bounds()
    if looks and looks[-1] >= LEAST_PAIRS:
        first_contrast = compared_pairs[0]
        sides = tuple((order.index(first_contrast.a), order.index(first_contrast.b)) for order in orders)
        bounds = _bounds(experiment, len(compared_pairs), sides, positions if is_adjusted else 1, looks)
    return Design(
        outcome_over=experiment.outcome_over,
        test="t",
        alpha=experiment.alpha,
        margin=experiment.margin,
        measures=measures,
        comparisons=compared_pairs,
        positions=positions,
        adjusted=is_adjusted,
        early_stop=experiment.early_stop,
        looks=looks,
        boundaries=bounds.boundaries,
        anytime_after=0 if experiment.open_ended else None,
        evidence=1.0 / experiment.alpha,
        positions_matter=positions_matter,
        futility=bounds.futility,
        worst=worst,
        not_worse=UNSET if experiment.claim == "difference" else NonInferiority(nominal_p=bounds.not_worse_p),
        guardrails=_guardrails(experiment, measures, bounds) if experiment.guardrails else UNSET,
        positions_drawn=experiment.order == "balanced" and draws_positions(positions),
        variances=moderation(experiment.variances, len(compared_pairs)),
        shape="any" if experiment.shape == "any" else UNSET,
    )


def _guardrails(experiment: ResolvedExperiment, measures: TaskMeasures, bounds: _Bounds) -> Guardrails:
    """Return the guardrails, whose bounds are half of the two-sided ones."""
    items = guardrails_of(experiment.guardrails, measures)
    return Guardrails(items=items, nominal_p=tuple(p / 2.0 for p in bounds.own_p))


def _bounds(
    experiment: ResolvedExperiment, comparisons_count: int, sides: Sides, columns: int, looks: tuple[int, ...]
) -> _Bounds:
    """Compute the bounds of the comparisons, which have `columns` columns of their least squares."""
    alpha = experiment.alpha
    prior_df = prior_df_of(moderation(experiment.variances, comparisons_count))
    bounds = _Bounds(boundaries=boundaries_of(alpha, comparisons_count, sides, columns, looks, prior_df))
    if experiment.claim == "not-worse":
        not_worse = non_inferiority_of(alpha, comparisons_count, sides, columns, looks, prior_df)
        bounds.not_worse_p = not_worse.nominal_p
    if experiment.guardrails:  # each measure has its own variance
        own_boundaries = bounds.boundaries
        if prior_df:
            own_boundaries = boundaries_of(alpha, comparisons_count, sides, columns, looks)
        bounds.own_p = own_boundaries[0].nominal_p
    if experiment.futility:
        bounds.futility = futility_of(experiment.futility, sides, columns, looks, prior_df)
    return bounds


def _adjusts_by_default(
    experiment: ResolvedExperiment, orders: Sequence[tuple[str, ...]], looks: tuple[int, ...]
) -> bool:
    """Whether to adjust for positions in an experiment with these orders of its groups."""
    first_look = looks[0] if looks else LEAST_PAIRS
    numbers = {group.name: index for index, group in enumerate(experiment.groups)}
    numbered_orders = [tuple(numbers[name] for name in order) for order in orders[:first_look]]
    return adjusts(numbered_orders, first_look)
