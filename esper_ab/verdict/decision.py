"""The rule that turns the evidence on one comparison into a verdict. Pure; every ground is an argument.

Whether a boundary was crossed, or equivalence shown, is decided at the looks (`looks.py`) and nowhere else.
"""

from __future__ import annotations

import msgspec

from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.looks import LookDecision
from esper_ab.verdict.word import Verdict


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a verdict rests on."""

    pairs: int
    blocked: bool  # by the audit
    identical: bool  # equal records in every pair, and so every difference zero
    decision: LookDecision  # of the looks, where the last one shows it still
    direction: float  # +1: a is better, -1: b is better, 0: not crossed
    below_margin: bool  # the simultaneous interval lies inside -margin .. +margin, and there are pairs enough
    capped: bool  # by the audit or by lost runs: at most INCONCLUSIVE


def decide(grounds: Grounds) -> Verdict:
    """Return the first verdict that applies, in the order of `Verdict`; capped, INCONCLUSIVE follows NO INFERENCE."""
    if grounds.blocked:
        return Verdict.BLOCKED
    if grounds.pairs < LEAST_PAIRS and (grounds.capped or not grounds.identical):
        return Verdict.NO_INFERENCE
    return Verdict.INCONCLUSIVE if grounds.capped else decided(grounds)


def decided(grounds: Grounds) -> Verdict:
    """Return the verdict of records and looks alone, before audit and losses."""
    if grounds.identical:
        return Verdict.IDENTICAL
    if grounds.decision == "crossed" and grounds.direction > 0:
        return Verdict.BETTER_BELOW_MARGIN if grounds.below_margin else Verdict.BETTER
    if grounds.decision == "crossed" and grounds.direction < 0:
        return Verdict.WORSE_BELOW_MARGIN if grounds.below_margin else Verdict.WORSE
    return Verdict.EQUIVALENT if grounds.decision == "equivalent" else Verdict.INCONCLUSIVE
