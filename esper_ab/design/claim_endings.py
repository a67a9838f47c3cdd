"""How a comparison ends whose plan asks whether a group is not worse, at each true difference, by simulation. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.design.simulation import Simulation, take_look
from esper_ab.design.t_process import t_values
from esper_ab.stats.distributions import t_isf

# True differences for which such a plan is described, in margins; below 0, the group is worse.
DIFFERENCES = (0.5, 0.0, -0.5, -1.0)


class ClaimEndings(msgspec.Struct, frozen=True, kw_only=True):
    """How a comparison ends at one true difference, as shares of experiments; the first four have the sum 1."""

    better: float
    not_worse: float  # by the margin or more, without a difference that was shown
    worse: float
    undecided: float
    replicates: float  # mean number used


def claim_endings(simulation: Simulation, margin: float) -> tuple[ClaimEndings, ...]:
    """Return the endings at each of `DIFFERENCES`; `margin` is in SDs of the differences."""
    return tuple(_endings(simulation, times * margin, margin) for times in DIFFERENCES)


def _endings(simulation: Simulation, effect: float, margin: float) -> ClaimEndings:
    plan = simulation.scheme
    if not plan.nominal_p:
        return ClaimEndings(better=0.0, not_worse=0.0, worse=0.0, undecided=1.0, replicates=float(plan.replicates))
    process = plan.process
    t = t_values(process, simulation.draws, effect)
    at_margin = t_values(process, simulation.draws, effect + margin)
    differs = np.abs(t) >= t_isf(np.asarray(plan.difference_p) / 2.0, process.df)[:, None]
    differs &= simulation.has_evidence_for_any_shape(effect, np.sign(t))
    claims = at_margin >= t_isf(np.asarray(plan.nominal_p) / 2.0, process.df)[:, None]
    claims &= simulation.has_evidence_for_any_shape(effect + margin, margin=margin, errors=2.0)
    ends = differs | claims
    first_ends = np.argmax(ends, axis=0)
    decided = ends.any(axis=0)
    has_difference = take_look(first_ends, differs)
    positive = take_look(first_ends, t) > 0.0
    looks = np.asarray(process.looks)
    return ClaimEndings(
        better=float(np.mean(has_difference & positive)),
        not_worse=float(np.mean(decided & ~has_difference)),
        worse=float(np.mean(has_difference & ~positive)),
        undecided=float(np.mean(~decided)),
        replicates=float(np.mean(np.where(decided, looks[first_ends], plan.replicates))),
    )


def rows_of(endings: Sequence[ClaimEndings]) -> dict[str, list[float]]:
    """Return the shares by the words of their row."""
    return {
        "better": [ending.better for ending in endings],
        "not worse": [ending.not_worse for ending in endings],
        "worse": [ending.worse for ending in endings],
        "undecided": [ending.undecided for ending in endings],
    }
