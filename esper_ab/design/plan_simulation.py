"""A simulation of a plan's looks with few paths, for what is said about the plan before any run."""

from __future__ import annotations

from msgspec import UNSET

from esper_ab.design.design import Design
from esper_ab.design.scheme import PowerQuestion, generator_of, scheme
from esper_ab.design.simulation import FEW_PATHS, Simulation


def simulation_of(design: Design, futility: float | None = None, *, sd: float | None = None) -> Simulation:
    """Return a simulation of the design's looks; `futility`, if given, takes the place of the design's.

    `sd` is that of the differences. Only with it can claims that must hold for any shape be simulated; without it, the
    simulation is of the t-test alone.
    """
    if futility is None:
        futility = 0.0 if design.futility is None else design.futility.power
    question = PowerQuestion(
        margin=design.margin,
        alpha=design.alpha,
        groups=design.positions,
        comparisons=len(design.comparisons),
        looks=design.looks,
        positions_matter=design.positions_matter,
        futility=futility,
        not_worse=UNSET if design.non_inferiority is None else True,
        prior_df=design.prior_df or UNSET,
        largest=design.largest_difference() if design.any_shape else UNSET,
    )
    plan = scheme(design.looks[-1], design.looks, question)
    shape_bound = None if sd is None else question.shape_bound(sd)
    return Simulation(plan, generator_of(question), FEW_PATHS, shape_bound=shape_bound)
