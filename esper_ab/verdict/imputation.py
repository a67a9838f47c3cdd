"""Sensitivity of a claim to lost runs: imputation against it. Pure.

Runs need not be lost at random: a crash may replace a collapse, so that no observed outcome bounds what was lost. For
a claim that a group is better, each of its lost runs counts as the declared worst outcome, each lost run of the other
group as the best outcome seen, and the last look is taken again at its own bound. If no worst outcome is declared, a
group that lost a run is not called better. A difference is called small only if both groups lost equally many runs,
at most one each, and the look still shows it when either group's lost run counts as the worst outcome. Runs that were
cancelled because another run of their replicate failed get the mean of their group.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.design.design import Design
from esper_ab.stats.floats import Floats, exact_sum
from esper_ab.stats.pair import Data, Pair, Pairs, Samples, before, ends
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.look import Look
from esper_ab.verdict.looks import ComparisonProgress, retake_look
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
    if lost.b >= _RECURS and lost.a == 0:
        return b
    return None


def completed(
    design: Design, data: Data, halves: Sequence[HalfPair], *, against_a: bool
) -> tuple[Data, float | None, float | None]:
    """Complete the half pairs against one group: a if `against_a`, else b.

    Returns all runs, and the outcomes that stand for failed runs of a and of b. For the group that is completed
    against, it is None if no worst outcome is declared.

    - A failed run of that group gets the declared worst outcome, or a worse outcome that was seen.
    - A failed run of the other group gets the best outcome seen.
    - A cancelled run gets the mean of its group.

    A replicate in which only the run of a third group failed is left out. Raises ValueError if no outcome was observed,
    or if a run of that group failed and no worst outcome is declared.
    """
    seen_a = np.append(data.a, [half.a for half in halves if half.a is not None])
    seen_b = np.append(data.b, [half.b for half in halves if half.b is not None])
    seen = ends(Samples(a=seen_a, b=seen_b))
    best = min(seen) if design.outcome.sign < 0.0 else max(seen)
    worst = None if design.worst is None else design.outcome.worst((design.worst, *seen))
    given_a, given_b = (worst, best) if against_a else (best, worst)
    pairs = []  # completed
    for half in halves:
        if half.failed_a or half.failed_b:
            a = _complete(half.a, half.failed_a, given_a, seen_a)
            b = _complete(half.b, half.failed_b, given_b, seen_b)
            pairs.append(
                Pair(replicate=half.replicate, a=a, b=b, position_a=half.position_a, position_b=half.position_b)
            )
    if not isinstance(data, Samples):
        return data.followed_by(Pairs.of(pairs)), given_a, given_b
    more_a = []
    more_b = []
    for pair, half in zip(pairs, halves, strict=True):  # each has one lost run and no partner
        if half.failed_a:
            more_a.append(pair.a)
        if half.failed_b:
            more_b.append(pair.b)
    return Samples(a=np.append(data.a, more_a), b=np.append(data.b, more_b)), given_a, given_b


def _complete(value: float | None, failed: bool, given: float | None, own: Floats) -> float:
    """Return the outcome of a run: its own `value`, the outcome `given` to a failed run, or the mean of its group."""
    if value is not None:
        return value
    if failed and given is None:
        raise ValueError("no worst outcome is declared")
    if given is not None and (failed or not own.size):
        return given
    return exact_sum(own) / own.size


def imputed(
    design: Design, data: Data, progress: ComparisonProgress, lost: Lost, items: ComparedItems | None = None
) -> Imputed | None:
    """Take the last look again with lost runs imputed; None if nothing is claimed or no run failed.

    With early stops, the last look is the one that decided. Otherwise it may be a later one; reports show its numbers.
    """
    if not progress.claimed:
        return None
    look = progress.looks[-1]
    lost = lost.before(look.replicates)
    used = before(data, look.replicates)
    if not lost.a and not lost.b:
        return None
    retakes = _retakes(design, look, used, lost, items)
    small = retakes is not None and all(again.look.small for again in retakes)
    favours_a = progress.direction * design.outcome.sign > 0.0
    nothing = Imputed(
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
    if progress.decision == "equivalent":
        if retakes is None:
            return nothing
        again = min(retakes, key=_favours_equivalence)
    else:
        lost_by_claimed = lost.a if favours_a else lost.b
        if design.worst is None and lost_by_claimed:
            return nothing
        again = _retake(design, look, used, lost, items, against_a=favours_a)
    return msgspec.structs.replace(
        nothing,
        given_a=again.given_a if lost.a else None,
        given_b=again.given_b if lost.b else None,
        pairs=again.look.pairs,
        mean=again.look.mean,
        p=again.look.p,
        e=again.look.e,
        survives=progress.upheld_by(again.look),
    )


def limits_with_losses(
    design: Design, data: Data, progress: ComparisonProgress, lost: Lost, items: ComparedItems | None = None
) -> tuple[float | None, float | None]:
    """Return limits of the last look's repeated interval that hold whatever outcomes its lost runs would have had.

    Returns (None, None) if there are no such limits, because of unequal or several losses, no declared worst outcome,
    or no interval.
    """
    if not progress.looks or progress.looks[-1].low is None:
        return None, None
    look = progress.looks[-1]
    lost = lost.before(look.replicates)
    looks = [look]
    if lost.a or lost.b:
        retakes = _retakes(design, look, before(data, look.replicates), lost, items) or ()
        looks = [again.look for again in retakes]
    lows = [look.low for look in looks if look.low is not None]
    highs = [look.high for look in looks if look.high is not None]
    if not looks or len(lows) < len(looks) or len(highs) < len(looks):
        return None, None
    return min(lows), max(highs)


class _Retake(msgspec.Struct, frozen=True, kw_only=True):
    """A look taken again with lost runs imputed."""

    look: Look
    given_a: float | None  # outcome imputed to failed runs of a
    given_b: float | None


def _retakes(
    design: Design, look: Look, data: Data, lost: Lost, items: ComparedItems | None
) -> tuple[_Retake, _Retake] | None:
    """Take the look again with losses counted against each group in turn.

    None if losses rule out claiming equivalence.
    """
    if design.worst is None or lost.a != lost.b or lost.a > 1:
        return None
    against_a = _retake(design, look, data, lost, items, against_a=True)
    against_b = _retake(design, look, data, lost, items, against_a=False)
    return against_a, against_b


def _retake(
    design: Design, look: Look, data: Data, lost: Lost, items: ComparedItems | None, *, against_a: bool
) -> _Retake:
    full, given_a, given_b = completed(design, data, lost.replicates, against_a=against_a)
    return _Retake(look=retake_look(design, look, full, items), given_a=given_a, given_b=given_b)


def _favours_equivalence(again: _Retake) -> tuple[bool, float]:
    """Return a key that sorts retakes, the least favourable to equivalence first."""
    return again.look.equivalent, -abs(again.look.mean or 0.0)
