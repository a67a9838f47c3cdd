"""The words of verdicts. A separate module, so that code that only reads verdicts loads no statistics."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict on the first group against the second; members are in the order in which they are checked."""

    BLOCKED = "BLOCKED"
    NO_INFERENCE = "NO INFERENCE"
    IDENTICAL = "IDENTICAL"
    BETTER_BELOW_MARGIN = "BETTER, BELOW MARGIN"
    WORSE_BELOW_MARGIN = "WORSE, BELOW MARGIN"
    BETTER = "BETTER"
    WORSE = "WORSE"
    NOT_WORSE = "NOT WORSE"  # of a plan that claims it: not worse by the margin or more
    EQUIVALENT = "EQUIVALENT"
    INCONCLUSIVE = "INCONCLUSIVE"


DIFFERENT = frozenset(
    {
        Verdict.BETTER,
        Verdict.WORSE,
        Verdict.BETTER_BELOW_MARGIN,
        Verdict.WORSE_BELOW_MARGIN,
    }
)  # which claim a difference
CLAIMS = DIFFERENT | {Verdict.NOT_WORSE, Verdict.EQUIVALENT}  # which claim anything
SMALL = CLAIMS - {
    Verdict.BETTER,
    Verdict.WORSE,
    Verdict.NOT_WORSE,
}  # which claim that the difference is smaller than the margin
