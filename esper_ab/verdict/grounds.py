"""The verdict on one comparison as a pure function of its grounds. Pure."""

from __future__ import annotations

import msgspec

from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.looks import LookDecision
from esper_ab.verdict.verdict import Verdict


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a verdict rests on."""

    pairs: int  # of the data; for unpaired runs, the runs of the smaller group; or what else is too few (`sample_of`)
    least: int = LEAST_PAIRS  # of them, for a verdict
    blocked: bool = False  # by the audit
    capped: bool = False  # at most INCONCLUSIVE, because of the audit or lost runs
    identical: bool  # equal records in every pair, and so a difference of zero in every pair
    standing: LookDecision  # the decision of the looks, if the last look confirms it
    direction: float  # above 0: the first group is better; below 0: the second one; 0: not crossed
    small: bool  # the difference is shown to be smaller than the margin

    @property
    def better(self) -> bool:
        """True if the first group is shown to be better."""
        return self.standing == "crossed" and self.direction > 0.0

    @property
    def worse(self) -> bool:
        """True if the first group is shown to be worse."""
        return self.standing == "crossed" and self.direction < 0.0


def decide(grounds: Grounds) -> Verdict:
    """Return the first verdict that applies, in the order of `Verdict`.

    If capped, INCONCLUSIVE follows NO INFERENCE directly.
    """
    if grounds.blocked:
        return Verdict.BLOCKED
    if grounds.pairs < grounds.least and (grounds.capped or not grounds.identical):
        return Verdict.NO_INFERENCE
    if grounds.capped:
        return Verdict.INCONCLUSIVE
    return decide_unaudited(grounds)


def decide_unaudited(grounds: Grounds) -> Verdict:
    """Return the first verdict that the records and the looks alone allow, before the audit and losses are applied."""
    conditions = {
        Verdict.IDENTICAL: grounds.identical,
        Verdict.BETTER_BELOW_MARGIN: grounds.better and grounds.small,
        Verdict.WORSE_BELOW_MARGIN: grounds.worse and grounds.small,
        Verdict.BETTER: grounds.better,
        Verdict.WORSE: grounds.worse,
        Verdict.NOT_WORSE: grounds.standing == "not-worse",
        Verdict.EQUIVALENT: grounds.standing == "equivalent",
        Verdict.INCONCLUSIVE: True,
    }
    return next(verdict for verdict, is_met in conditions.items() if is_met)
