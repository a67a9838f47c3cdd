"""Would the decision still stand if every lost run had been the worst seen?

A run that was lost says nothing, but a group that loses runs may lose the bad ones. So the lost runs of both groups get
the worst endpoint observed in either, and the deciding look is taken again with the very bound it had. What this cannot
overturn does not hang on the losses.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.design import Boundary, Contrast, Design
from esper_ab.stats.pair import Pair
from esper_ab.stats.question import HalfPair, Lost
from esper_ab.stats.sequential import Course, follow

_RECURS = 2  # runs that one group lost and the other did not: no longer chance, but a property of the group


class Imputed(msgspec.Struct, frozen=True, kw_only=True):
    """The deciding look with the worst observed endpoint in place of the lost runs."""

    lost_a: int  # runs without endpoint at that look
    lost_b: int
    worst: float  # percent
    pairs: int  # observed and imputed ones
    mean: float | None  # points
    p: float | None  # of the design's test
    e: float | None  # of the anytime-valid rule
    survives: bool  # the same decision in the same direction


def recurs_in(a: str, b: str, lost: Lost) -> str | None:
    """The group that lost two runs or more while the other lost none: counted as caused by it."""
    if lost.a >= _RECURS and lost.b == 0:
        return a
    return b if lost.b >= _RECURS and lost.a == 0 else None


def worst_value(pairs: Sequence[Pair], halves: Sequence[HalfPair]) -> tuple[tuple[Pair, ...], float]:
    """The pairs with the half ones completed by the least endpoint of all these runs, and that endpoint (percent).

    A replicate that lost both runs says nothing about either group and stays out. ValueError without any endpoint.
    """
    observed = [(pair.a, pair.b) for pair in pairs] + [(half.a, half.b) for half in halves]
    seen = [value for both in observed for value in both if value is not None]
    if not seen:
        raise ValueError("no endpoint was observed")
    worst = min(seen)
    completed = tuple(
        Pair(
            replicate=half.replicate,
            a=worst if half.a is None else half.a,
            b=worst if half.b is None else half.b,
            position_a=half.position_a,
            position_b=half.position_b,
        )
        for half in halves
        if half.a is not None or half.b is not None
    )
    return tuple(sorted((*pairs, *completed), key=lambda pair: pair.replicate)), worst


def imputed(design: Design, pairs: Sequence[Pair], course: Course, lost: Lost) -> Imputed | None:
    """None when there is nothing to overturn: no decision, or both groups lost as many runs before it."""
    if course.decided_at is None:
        return None
    lost = lost.before(course.decided_at)
    if lost.a == lost.b:
        return None
    used = [pair for pair in pairs if pair.replicate < course.decided_at]
    completed, worst = worst_value(used, lost.replicates)
    again = _again(design, completed, course)
    look = again.looks[-1]
    return Imputed(
        lost_a=lost.a,
        lost_b=lost.b,
        worst=worst,
        pairs=look.pairs,
        mean=look.mean,
        p=look.p,
        e=look.e,
        survives=(again.decision, again.direction) == (course.decision, course.direction),
    )


def _again(design: Design, pairs: Sequence[Pair], course: Course) -> Course:
    """The deciding look alone, with the bound that held there."""
    look = next(look for look in course.looks if look.replicates == course.decided_at)
    alone = Contrast(a="a", b="b")
    if look.bound_p is not None:
        boundary = Boundary(open=1, alpha=look.alpha, nominal_p=(look.bound_p,))
        rule = msgspec.structs.replace(
            design, comparisons=(alone,), looks=(look.replicates,), boundaries=(boundary,), anytime_after=None
        )
    else:
        assert look.bound_e is not None  # a look that decides has one of the two bounds
        rule = msgspec.structs.replace(
            design,
            comparisons=(alone,),
            looks=(),
            boundaries=(),
            anytime_after=look.replicates - 1,
            evidence=look.bound_e,
        )
    return follow(rule, {alone: pairs}, look.replicates)[alone]
