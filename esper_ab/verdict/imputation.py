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


def recurs_in(a: str, b: str, losses: Lost) -> str | None:
    """Return the group whose runs failed at least twice, if the other group's never did: it is a likely cause."""
    if losses.a >= _RECURS and losses.b == 0:
        return a
    if losses.b >= _RECURS and losses.a == 0:
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
    seen_a = np.append(data.a, [lost_pair.a for lost_pair in halves if lost_pair.a is not None])
    seen_b = np.append(data.b, [lost_pair.b for lost_pair in halves if lost_pair.b is not None])
    seen_outcomes = ends(Samples(a=seen_a, b=seen_b))
    best_outcome = min(seen_outcomes) if design.outcome.sign < 0.0 else max(seen_outcomes)
    worst_outcome = None if design.worst is None else design.outcome.worst((design.worst, *seen_outcomes))
    imputed_a, imputed_b = (worst_outcome, best_outcome) if against_a else (best_outcome, worst_outcome)
    pairs = []  # completed
    for lost_pair in halves:
        if lost_pair.failed_a or lost_pair.failed_b:
            a = _complete(lost_pair.a, lost_pair.failed_a, imputed_a, seen_a)
            b = _complete(lost_pair.b, lost_pair.failed_b, imputed_b, seen_b)
            pairs.append(
                Pair(
                    replicate=lost_pair.replicate,
                    a=a,
                    b=b,
                    position_a=lost_pair.position_a,
                    position_b=lost_pair.position_b,
                )
            )
    if not isinstance(data, Samples):
        return data.followed_by(Pairs.of(pairs)), imputed_a, imputed_b
    more_a = []
    more_b = []
    for pair, lost_pair in zip(pairs, halves, strict=True):  # each has one lost run and no partner
        if lost_pair.failed_a:
            more_a.append(pair.a)
        if lost_pair.failed_b:
            more_b.append(pair.b)
    return Samples(a=np.append(data.a, more_a), b=np.append(data.b, more_b)), imputed_a, imputed_b


def _complete(value: float | None, has_failed: bool, imputed_value: float | None, own_values: Floats) -> float:
    """Return the outcome of a run: its own `value`, the outcome `imputed_value` to a failed run, or the mean of its
    group.
    """
    if value is not None:
        return value
    if has_failed and imputed_value is None:
        raise ValueError("no worst outcome is declared")
    if imputed_value is not None and (has_failed or not own_values.size):
        return imputed_value
    return exact_sum(own_values) / own_values.size


def imputed(
    design: Design, data: Data, progress: ComparisonProgress, losses: Lost, items: ComparedItems | None = None
) -> Imputed | None:
    """Take the last look again with lost runs imputed; None if nothing is claimed or no run failed.

    With early stops, the last look is the one that decided. Otherwise it may be a later one; reports show its numbers.
    """
    if not progress.claimed:
        return None
    look = progress.looks[-1]
    losses = losses.before(look.replicates)
    used_data = before(data, look.replicates)
    if not losses.a and not losses.b:
        return None
    retakes = _retakes(design, look, used_data, losses, items)
    is_small = retakes is not None and all(retake.look.small for retake in retakes)
    favours_a = progress.favours_a(design.outcome.sign)
    empty_imputation = Imputed(
        lost_a=losses.a,
        lost_b=losses.b,
        given_a=None,
        given_b=None,
        pairs=look.pairs,
        mean=None,
        p=None,
        e=None,
        survives=False,
        small=is_small,
    )
    if progress.decision == "equivalent":
        if retakes is None:
            return empty_imputation
        retake = min(retakes, key=_favours_equivalence)
    else:
        lost_by_claimed = losses.a if favours_a else losses.b
        if design.worst is None and lost_by_claimed:
            return empty_imputation
        retake = _retake(design, look, used_data, losses, items, against_a=favours_a)
    return msgspec.structs.replace(
        empty_imputation,
        given_a=retake.given_a if losses.a else None,
        given_b=retake.given_b if losses.b else None,
        pairs=retake.look.pairs,
        mean=retake.look.mean,
        p=retake.look.p,
        e=retake.look.e,
        survives=progress.upheld_by(retake.look),
    )


def limits_with_losses(
    design: Design, data: Data, progress: ComparisonProgress, losses: Lost, items: ComparedItems | None = None
) -> tuple[float | None, float | None]:
    """Return limits of the last look's repeated interval that hold whatever outcomes its lost runs would have had.

    Returns (None, None) if there are no such limits, because of unequal or several losses, no declared worst outcome,
    or no interval.
    """
    if not progress.looks or progress.looks[-1].low is None:
        return None, None
    look = progress.looks[-1]
    losses = losses.before(look.replicates)
    looks = [look]
    if losses.a or losses.b:
        retakes = _retakes(design, look, before(data, look.replicates), losses, items) or ()
        looks = [retake.look for retake in retakes]
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
    design: Design, look: Look, data: Data, losses: Lost, items: ComparedItems | None
) -> tuple[_Retake, _Retake] | None:
    """Take the look again with losses counted against each group in turn.

    None if losses rule out claiming equivalence.
    """
    if design.worst is None or losses.a != losses.b or losses.a > 1:
        return None
    retake_against_a = _retake(design, look, data, losses, items, against_a=True)
    retake_against_b = _retake(design, look, data, losses, items, against_a=False)
    return retake_against_a, retake_against_b


def _retake(
    design: Design, look: Look, data: Data, losses: Lost, items: ComparedItems | None, *, against_a: bool
) -> _Retake:
    completed_data, imputed_a, imputed_b = completed(design, data, losses.replicates, against_a=against_a)
    return _Retake(look=retake_look(design, look, completed_data, items), given_a=imputed_a, given_b=imputed_b)


def _favours_equivalence(retake: _Retake) -> tuple[bool, float]:
    """Return a key that sorts retakes, the least favourable to equivalence first."""
    return retake.look.equivalent, -abs(retake.look.mean or 0.0)
