"""Probability of improvement: A12 over all combinations of runs, and the number of wins within pairs.

A12 is Vargha & Delaney's (2000) measure of stochastic superiority, U / (n m), where ties count one half. It is not
labelled with words such as "large".
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.paired_difference import differences
from esper_ab.stats.statistic import ComparisonContext, Statistic


class ProbabilityOfImprovement(msgspec.Struct, frozen=True, kw_only=True):
    """A12 = P(a run of A is better than a run of B) + P(equal) / 2, and the wins, ties and losses of A within pairs."""

    a12: float
    wins: int
    ties: int
    losses: int
    cliffs_delta: float  # P(a run of A is better) - P(it is worse), Cliff (1993)

    @property
    def pairs(self) -> int:
        return self.wins + self.ties + self.losses


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> ProbabilityOfImprovement:
    """Compute A12 and the wins of a over b [pairs], assuming that higher is better."""
    d = differences(a, b)
    wins = int(np.sum(d > 0))
    losses = int(np.sum(d < 0))
    a12 = _a12(floats(a), floats(b))
    ties = int(d.size) - wins - losses
    return ProbabilityOfImprovement(a12=a12, wins=wins, ties=ties, losses=losses, cliffs_delta=2.0 * a12 - 1.0)


def _a12(a: Floats, b: Floats) -> float:
    """Return the share of all combinations [n, m] of a and b in which a is greater, where equal ones count one half.

    Needs memory for n + m values only.
    """
    sorted_b = np.sort(b)
    sorted_a = np.sort(a)  # neighbours are looked for close to one another, which is faster
    wins_of_a = int(np.searchsorted(sorted_b, sorted_a, side="left").sum())
    wins_and_ties = int(np.searchsorted(sorted_b, sorted_a, side="right").sum())
    return 0.5 * (wins_of_a + wins_and_ties) / (a.size * b.size)


def in_words(a: str, b: str, improvement: ProbabilityOfImprovement) -> str:
    """Return "A beats B in 5 of 6 pairs", with the number of ties if there are any."""
    pairs = "1 pair" if improvement.pairs == 1 else f"{improvement.pairs} pairs"
    ties = f", {improvement.ties} tied" if improvement.ties else ""
    return f"{a} beats {b} in {improvement.wins} of {pairs}{ties}"


def _show(result: ProbabilityOfImprovement, context: ComparisonContext) -> str:
    words = in_words(context.a, context.b, result)
    return f"{words}; A12 = {result.a12:.2f}, Cliff's delta {result.cliffs_delta:+.2f}"


STATISTIC = Statistic[ProbabilityOfImprovement](
    label="improvement",
    kind="effect",
    place=1,
    show=_show,
    of_equal=True,
    orders=True,
    compute=lambda a, b, _: probability_of_improvement(a, b),
)
