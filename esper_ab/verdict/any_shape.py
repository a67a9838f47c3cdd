"""Intervals of a look that hold whatever the shapes of the groups' distributions, as `--shape any` asks for. Pure.

They rest on evidence that is valid at every look, and assume nothing but the range of possible outcomes. Differences
are not adjusted for device and start order, whose effects cancel over the blocks of a plan: the evidence of a balanced
set of pairs is valid without an adjustment, because a product of factors is largest if all are equal.
"""

from __future__ import annotations

import msgspec

from esper_ab.design.any_shape import required_evidence
from esper_ab.design.design import Design
from esper_ab.stats.bounded_mean import interval
from esper_ab.stats.pair import Data, Samples, ends


class ShapeIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """The differences that the evidence for any shape does not exclude."""

    repeated: tuple[float, float]  # at the comparison's share of alpha
    simultaneous: tuple[float, float]  # at its initial share
    equivalence: tuple[float, float]  # of two one-sided tests at the initial share


def shape_intervals(design: Design, used_data: Data, n_open: int) -> ShapeIntervals | None:
    """Return the intervals for these pairs, of a comparison of which `n_open` share alpha; None without pairs."""
    if isinstance(used_data, Samples) or not len(used_data):
        return None
    differences = used_data.differences
    size = design.largest_difference(ends(used_data))
    first_share = design.alpha / len(design.comparisons)
    return ShapeIntervals(
        repeated=interval(differences, size, required_evidence(design.alpha / n_open)),
        simultaneous=interval(differences, size, required_evidence(first_share)),
        equivalence=interval(differences, size, required_evidence(2.0 * first_share)),
    )


def hull(
    first_interval: tuple[float, float] | None, second_interval: tuple[float, float]
) -> tuple[float, float] | None:
    """Return the least interval that contains both; None if there is no first one."""
    if first_interval is None:
        return None
    return min(first_interval[0], second_interval[0]), max(first_interval[1], second_interval[1])
