"""Sensitivity of a decision to lost runs: worst-case imputation. Pure.

Runs need not be lost at random: a group may lose its bad ones. So runs that failed get the worst endpoint observed in
either group, those that were cancelled with them the mean of their group, and the last look is taken again at its own
bound. A decision that survives does not depend on the losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from esper_ab.design.design import Design
from esper_ab.stats.pair import Pair
from esper_ab.verdict.looks import Course, retake
from esper_ab.verdict.question import HalfPair, Lost

_RECURS = 2  # replicates that failed by one group's run and none by the other's: a property of the group


class Imputed(msgspec.Struct, frozen=True, kw_only=True):
    """The last look with the worst observed endpoint in place of the lost runs."""

    lost_a: int  # replicates given up because of a's run, before that look
    lost_b: int
    worst: float  # percent, of either group
    pairs: int  # observed and imputed ones
    mean: float | None  # points
    p: float | None  # of the design's test
    e: float | None  # of the anytime-valid rule
    survives: bool  # the same decision in the same direction


def recurs_in(a: str, b: str, lost: Lost) -> str | None:
    """Return the group whose runs failed twice or more while none of the other's did: counted as caused by it."""
    if lost.a >= _RECURS and lost.b == 0:
        return a
    return b if lost.b >= _RECURS and lost.a == 0 else None


def worst_value(pairs: Sequence[Pair], halves: Sequence[HalfPair]) -> tuple[tuple[Pair, ...], float]:
    """Return all pairs, half pairs completed, and the worst endpoint of these runs (percent).

    A run that failed gets the worst endpoint, one that was cancelled its group's mean. A replicate in which neither of
    the two failed, but a third group's run, stays out. ValueError without any endpoint.
    """
    seen_a = [value for value in (*(pair.a for pair in pairs), *(half.a for half in halves)) if value is not None]
    seen_b = [value for value in (*(pair.b for pair in pairs), *(half.b for half in halves)) if value is not None]
    if not seen_a and not seen_b:
        raise ValueError("no endpoint was observed")
    worst = min((*seen_a, *seen_b))

    def completed(value: float | None, failed: bool, seen: list[float]) -> float:
        if value is not None:
            return value
        return worst if failed or not seen else math.fsum(seen) / len(seen)

    found = tuple(
        Pair(
            replicate=half.replicate, a=completed(half.a, half.failed_a, seen_a),
            b=completed(half.b, half.failed_b, seen_b), position_a=half.position_a, position_b=half.position_b,
        )
        for half in halves
        if half.failed_a or half.failed_b
    )
    return tuple(sorted((*pairs, *found), key=lambda pair: pair.replicate)), worst


def imputed(design: Design, pairs: Sequence[Pair], course: Course, lost: Lost) -> Imputed | None:
    """Take the look that the verdict rests on again with lost runs imputed; None without a decision or unequal losses.

    That is the last look: the deciding one where the design stops early, else a later one, whose numbers are reported.
    """
    if course.decided_at is None:
        return None
    look = course.looks[-1]
    lost = lost.before(look.replicates)
    if lost.a == lost.b:
        return None
    completed, worst = worst_value([pair for pair in pairs if pair.replicate < look.replicates], lost.replicates)
    again = retake(design, look, completed)
    agree = again.mean is not None and again.mean * course.direction > 0.0
    return Imputed(
        lost_a=lost.a, lost_b=lost.b, worst=worst, pairs=again.pairs, mean=again.mean, p=again.p, e=again.e,
        survives=again.equivalent if course.decision == "equivalent" else again.crossed and agree,
    )  # fmt: skip
