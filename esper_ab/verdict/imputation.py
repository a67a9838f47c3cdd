"""Sensitivity of a decision to lost runs: imputation against the claim. Pure.

Runs need not be lost at random: a group may lose its bad ones, or its good ones. So the runs that failed get, of all
endpoints observed in either group, the one that speaks most against the claim: the worst where the claim is that their
group is better, the best where it is that it is worse; for a claim that the difference is small, both directions are
tried. Runs that were cancelled with them get the mean of their group. Then the last look is taken again at its own
bound. A decision that survives does not depend on the losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from esper_ab.design.design import Design
from esper_ab.stats.pair import Data, Pair, Samples, before, endpoints
from esper_ab.verdict.looks import Course, retake
from esper_ab.verdict.question import HalfPair, Lost

_RECURS = 2  # replicates that failed by one group's run and none by the other's: a property of the group


class Imputed(msgspec.Struct, frozen=True, kw_only=True):
    """The last look with lost runs imputed; of two directions, the one that speaks more against the decision."""

    lost_a: int  # replicates given up because of a's run, before that look
    lost_b: int
    given_a: float | None  # what failed runs of a got; None: none failed
    given_b: float | None
    pairs: int  # observed and imputed ones
    mean: float | None  # of the differences
    p: float | None  # of the design's test
    e: float | None  # of the anytime-valid rule
    survives: bool  # the same decision in the same direction
    small: bool  # in both directions the look still shows that the difference is smaller than the margin


def recurs_in(a: str, b: str, lost: Lost) -> str | None:
    """Return the group whose runs failed twice or more while none of the other's did: counted as caused by it."""
    if lost.a >= _RECURS and lost.b == 0:
        return a
    return b if lost.b >= _RECURS and lost.a == 0 else None


def completed(data: Data, halves: Sequence[HalfPair], against: int) -> tuple[Data, float, float]:
    """Return all runs, half pairs completed, and what a failed run of a and of b gets.

    `against`: +1 speaks against a lying above b (the lowest endpoint to a, the highest to b), -1 against a lying below.
    So a group that is said to be better gets the worst, whichever direction is better. A cancelled run gets its
    group's mean. A replicate in which neither of the two failed, but a third group's run, stays out.
    ValueError without any endpoint.
    """
    ends_a, ends_b = endpoints(data)
    seen_a = [value for value in (*ends_a, *(half.a for half in halves)) if value is not None]
    seen_b = [value for value in (*ends_b, *(half.b for half in halves)) if value is not None]
    if not seen_a and not seen_b:
        raise ValueError("no endpoint was observed")
    lowest, highest = min((*seen_a, *seen_b)), max((*seen_a, *seen_b))
    given_a, given_b = (lowest, highest) if against > 0 else (highest, lowest)
    if isinstance(data, Samples):
        more_a, more_b = [given_a for half in halves if half.failed_a], [given_b for half in halves if half.failed_b]
        return Samples(a=(*data.a, *more_a), b=(*data.b, *more_b)), given_a, given_b

    def complete(value: float | None, failed: bool, given: float, seen: list[float]) -> float:
        if value is not None:
            return value
        return given if failed or not seen else math.fsum(seen) / len(seen)

    found = tuple(
        Pair(
            replicate=half.replicate,
            a=complete(half.a, half.failed_a, given_a, seen_a),
            b=complete(half.b, half.failed_b, given_b, seen_b),
            position_a=half.position_a,
            position_b=half.position_b,
        )
        for half in halves
        if half.failed_a or half.failed_b
    )
    return (*data, *found), given_a, given_b


def imputed(design: Design, data: Data, course: Course, lost: Lost) -> Imputed | None:
    """Take the look that the verdict rests on again with lost runs imputed; None without a claim or a failed run.

    That is the last look: the deciding one where the design stops early, else a later one, whose numbers are reported.
    """
    if not course.claimed:
        return None
    look = course.looks[-1]
    lost = lost.before(look.replicates)
    if not lost.a and not lost.b:
        return None
    both = [_again(design, course, before(data, look.replicates), lost, against) for against in (1, -1)]
    small = all(one.small for one in both)
    if course.decision == "crossed":
        found = both[0] if course.direction > 0 else both[1]
    else:
        found = min(both, key=lambda one: (one.survives, -abs(one.mean or 0.0)))
    return msgspec.structs.replace(found, small=small)


def _again(design: Design, course: Course, data: Data, lost: Lost, against: int) -> Imputed:
    """Take the last look again with the failed runs imputed in one direction."""
    full, given_a, given_b = completed(data, lost.replicates, against)
    again = retake(design, course.looks[-1], full)
    agree = again.mean is not None and again.mean * course.direction > 0.0
    return Imputed(
        lost_a=lost.a, lost_b=lost.b, given_a=given_a if lost.a else None, given_b=given_b if lost.b else None,
        pairs=again.pairs, mean=again.mean, p=again.p, e=again.e, small=again.small,
        survives=again.equivalent if course.decision == "equivalent" else again.crossed and agree,
    )  # fmt: skip
