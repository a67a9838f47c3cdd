"""Whether runs or pairs that were measured before show a shape with which more claims than alpha are false. Pure.

A group whose runs are skewed or rarely fail, compared with one whose runs vary little, has differences of the same
shape; these have the error rate (`stats/error_rates`).
"""

from __future__ import annotations

import msgspec
from msgspec import UnsetType

from esper_ab.stats.error_rates import LookPlan, far_tail, rate_of_skewness, rate_of_tail
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.skewness import skewness
from esper_ab.stats.text import percent

# Lowest error rate that is worth a sentence; of 10 normal values 8 % seem to have one as high, of 20 values 1 %.
SAID_FROM = 0.10


class ShapeRisk(msgspec.Struct, frozen=True, kw_only=True):
    """The error rate of a plan between a group of this shape and one that varies little."""

    rate: float
    skewness: float
    tail: int  # values far from all others, on the side that raises the rate; 0: the skewness raises it
    values: int  # from which this is estimated


def shape_risk(values: Floats, seeds: int) -> ShapeRisk | None:
    """Return the risk of `values` [n], runs of a group or differences, for a plan of `seeds` with one look.

    None if it is lower than SAID_FROM, or if the values are too few or do not vary.
    """
    if values.size < LEAST_PAIRS or values.min() == values.max():
        return None
    centred_values = values - values.mean()
    plan = LookPlan(looks="one look", first=max(seeds, LEAST_PAIRS), comparisons=1)
    risks = []
    for side in (1.0, -1.0):
        tail = far_tail(side * centred_values)
        rate = rate_of_skewness(side * centred_values, plan) if tail is None else rate_of_tail(tail, plan)
        if rate is not None and rate >= SAID_FROM:
            count = 0 if tail is None else tail.count
            risk = ShapeRisk(rate=rate, skewness=skewness(values) or 0.0, tail=count, values=int(values.size))
            risks.append(risk)
    return max(risks, key=lambda risk: risk.rate, default=None)


def risk_lines(risk: ShapeRisk | UnsetType, kind: str) -> list[str]:
    """Return the sentence of `risk_line`; [] if there is no risk."""
    return [] if isinstance(risk, UnsetType) else [risk_line(risk, kind)]


def risk_line(risk: ShapeRisk, kind: str) -> str:
    """Say what the shape of the values, of which `kind` is the plural word, does to the error rate, and what helps."""
    if risk.tail:
        shape_words = f"{risk.tail} of {risk.values} {kind} lie far from all others"
    else:
        shape_words = f"the {risk.values} {kind} are skewed (skewness {risk.skewness:+.1f})"
    return (
        f"Shape: {shape_words}. Against a group that hardly varies, about {percent(round(risk.rate, 2))} of such plans "
        "would claim a difference that is not there; --shape any keeps them at alpha."
    )
