"""The rule that turns the numbers of one comparison into one word. Knows no formula; every number is handed in.

Today's rule is the fixed-R paired t. Looks, margins, equivalence and audits get their words here when they exist;
they are decided in this order, before what stands below them.
"""

from __future__ import annotations

from enum import StrEnum

from esper_ab.stats.paired_difference import PairedDifference

LEAST_PAIRS = 6  # with fewer, no exact test could back a rejection at 5 %: 2 / 2^5 > 0.05


class Verdict(StrEnum):
    """One word per comparison, about the first group against the second."""

    NO_INFERENCE = "NO INFERENCE"
    IDENTICAL = "IDENTICAL"
    BETTER = "BETTER"
    WORSE = "WORSE"
    INCONCLUSIVE = "INCONCLUSIVE"


def rule_sentence(alpha: float, comparisons: int) -> str:
    """The rule that `decide` applies, for the reader of a report."""
    shared = f" (5 % shared by {comparisons} comparisons)" if comparisons > 1 else ""
    return (
        f"BETTER or WORSE needs at least {LEAST_PAIRS} pairs, a paired t-test with p <= {alpha:.4g}{shared}, "
        f"and an interval that excludes 0, at the planned number of pairs; otherwise INCONCLUSIVE."
    )


def decide(difference: PairedDifference | None, *, identical: bool, complete: bool, alpha: float) -> Verdict:
    """`identical`: every difference is exactly zero; `complete`: no planned pair is missing (one look, at the end).

    `difference` is None when there is no pair at all.
    """
    if difference is None or (difference.pairs == 1 and not identical):
        return Verdict.NO_INFERENCE
    if identical:
        return Verdict.IDENTICAL
    if not complete or difference.pairs < LEAST_PAIRS:
        return Verdict.INCONCLUSIVE
    if difference.p is None or difference.low is None or difference.high is None or difference.p > alpha:
        return Verdict.INCONCLUSIVE
    if difference.low > 0.0:
        return Verdict.BETTER
    return Verdict.WORSE if difference.high < 0.0 else Verdict.INCONCLUSIVE
