"""Sensitivity of a claim to lost runs: imputation against it. Pure.

Runs need not be lost at random: a crash may replace a collapse, so that no observed outcome bounds what was lost. For
a claim that a group is better, each of its lost runs counts as the declared worst outcome, each lost run of the other
group as the best outcome seen, and the last look is taken again at its own bound. If no worst outcome is declared, a
group that lost a run is not called better. A difference is called small only if both groups lost equally many runs,
at most one each, and the look still shows it when either group's lost run counts as the worst outcome. Runs that were
cancelled because another run of their replicate failed get the mean of their group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from esper_ab.design.design import Design
from esper_ab.stats.pair import Data, Pair, Samples, before, outcomes
from esper_ab.verdict.look import Look
from esper_ab.verdict.looks import Course, retake
from esper_ab.verdict.question import HalfPair, Lost

_RECURS = 2  # losses in one group and none in the other that suggest a property of the group


class Imputed(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with lost runs imputed, in the direction that is less favourable to the claim."""

    lost_a: int  # replicates given up because of a's run, before that look
    lost_b: int
    given_a: float | None  # outcome imputed to failed runs of a; None: none failed, or nothing can be imputed
    given_b: float | None
    pairs: int  # observed and imputed ones
    mean: float | None  # of the differences; None: nothing can be imputed
    p: float | None  # of the design's test
    e: float | None  # of the anytime-valid rule
    survives: bool  # the look still makes the same claim in the same direction
    small: bool  # in both directions the look still shows that the difference is smaller than the margin


def recurs_in(a: str, b: str, lost: Lost) -> str | None:
    """Return the group whose runs failed at least twice, if the other group's never did: it is a likely cause."""
    if lost.a >= _RECURS and lost.b == 0:
        return a
    return b if lost.b >= _RECURS and lost.a == 0 else None


def completed(
    design: Design, data: Data, halves: Sequence[HalfPair], *, against_a: bool
) -> tuple[Data, float | None, float | None]:
    """Complete the half pairs against one group: a if `against_a`, else b.

    Returns all runs, and the outcomes that stand for failed runs of a and of b. The one of that group is None if no
    worst outcome is declared.

    - A failed run of that group gets the declared worst outcome, or a worse outcome that was seen.
    - A failed run of the other group gets the best outcome seen.
    - A cancelled run gets the mean of its group.

    A replicate in which only the run of a third group failed is left out. Raises ValueError if no outcome was observed,
    or if a run of that group failed and no worst outcome is declared.
    """
    ends_a, ends_b = outcomes(data)
    seen_a = [*ends_a, *(half.a for half in halves if half.a is not None)]
    seen_b = [*ends_b, *(half.b for half in halves if half.b is not None)]
    seen = (*seen_a, *seen_b)
    best = min(seen) if design.outcome.sign < 0.0 else max(seen)
    worst = None if design.worst is None else design.outcome.worst((design.worst, *seen))
    given_a, given_b = (worst, best) if against_a else (best, worst)

    def complete(value: float | None, failed: bool, given: float | None, own: list[float]) -> float:
        if value is not None:
            return value
        if failed and given is None:
            raise ValueError("no worst outcome is declared")
        if given is not None and (failed or not own):
            return given
        return math.fsum(own) / len(own)

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
    if not isinstance(data, Samples):
        return (*data, *found), given_a, given_b
    both = list(zip(found, halves, strict=True))  # each has one lost run and no partner
    more_a = (pair.a for pair, half in both if half.failed_a)
    more_b = (pair.b for pair, half in both if half.failed_b)
    return Samples(a=(*data.a, *more_a), b=(*data.b, *more_b)), given_a, given_b


def imputed(design: Design, data: Data, course: Course, lost: Lost) -> Imputed | None:
    """Take the last look again with lost runs imputed; None if nothing is claimed or no run failed.

    With early stops, the last look is the one that decided. Otherwise it may be a later one; reports show its numbers.
    """
    if not course.claimed:
        return None
    look = course.looks[-1]
    lost = lost.before(look.replicates)
    seen = before(data, look.replicates)
    if not lost.a and not lost.b:
        return None
    both = _both(design, look, seen, lost)
    small = both is not None and all(one.small for one, _, _ in both)
    favours_a = course.direction * design.outcome.sign > 0.0
    none = Imputed(
        lost_a=lost.a,
        lost_b=lost.b,
        given_a=None,
        given_b=None,
        pairs=look.pairs,
        mean=None,
        p=None,
        e=None,
        survives=False,
        small=small,
    )
    if course.decision == "equivalent":
        if both is None:
            return none
        again, given_a, given_b = min(both, key=lambda one: (one[0].equivalent, -abs(one[0].mean or 0.0)))
    else:
        if design.worst is None and (lost.a if favours_a else lost.b):
            return none
        again, given_a, given_b = _again(design, look, seen, lost, against_a=favours_a)
    return msgspec.structs.replace(
        none,
        given_a=given_a if lost.a else None,
        given_b=given_b if lost.b else None,
        pairs=again.pairs,
        mean=again.mean,
        p=again.p,
        e=again.e,
        survives=course.upheld_by(again),
    )


def limits_with_losses(design: Design, data: Data, course: Course, lost: Lost) -> tuple[float | None, float | None]:
    """Return limits of the last look's repeated interval that hold whatever outcomes its lost runs would have had.

    Returns (None, None) if there are no such limits, because of unequal or several losses, no declared worst outcome,
    or no interval.
    """
    if not course.looks or course.looks[-1].low is None:
        return None, None
    look = course.looks[-1]
    lost = lost.before(look.replicates)
    seen = before(data, look.replicates)
    both = ((look, None, None),) if not lost.a and not lost.b else _both(design, look, seen, lost)
    if both is None or any(one.low is None or one.high is None for one, _, _ in both):
        return None, None
    return min(one.low or 0.0 for one, _, _ in both), max(one.high or 0.0 for one, _, _ in both)


_Again = tuple[Look, float | None, float | None]  # a look taken again, and the outcomes imputed for a and for b


def _both(design: Design, look: Look, data: Data, lost: Lost) -> tuple[_Again, _Again] | None:
    """Take the look again with losses counted against each group in turn.

    None if losses rule out claiming equivalence.
    """
    if design.worst is None or lost.a != lost.b or lost.a > 1:
        return None
    first, second = (_again(design, look, data, lost, against_a=against_a) for against_a in (True, False))
    return first, second


def _again(design: Design, look: Look, data: Data, lost: Lost, *, against_a: bool) -> _Again:
    full, given_a, given_b = completed(design, data, lost.replicates, against_a=against_a)
    return retake(design, look, full), given_a, given_b
