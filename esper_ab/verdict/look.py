"""One look at one comparison: the test of its pairs, their intervals, and what may be claimed at the bounds. Pure.

Knows one comparison and one look; how the comparisons of an experiment share alpha is in `looks`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from esper_ab.design.counterbalance import told_apart
from esper_ab.design.design import Design
from esper_ab.stats.adjusted_difference import AdjustedDifference, adjusted_difference
from esper_ab.stats.anytime_t import anytime_interval, log_evidence
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.pair import Pair, degenerate
from esper_ab.stats.signed_rank import hodges_lehmann_interval, signed_rank

_LARGEST_LOG = 700.0  # exp() of more is no float; an e-value beyond it says no more
Interval = tuple[float, float] | None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison at one look. What the pairs cannot give is None."""

    replicates: int
    pairs: int  # of these replicates, lost ones not among them
    alpha: float  # that the comparison holds here
    bound_p: float | None  # nominal two-sided p; None at a look of the anytime-valid rule, or without any boundary
    bound_e: float | None  # e-value asked for; None at a planned look
    p: float | None  # of the design's test; None at a look of the anytime-valid rule
    e: float | None
    mean: float | None  # Hodges-Lehmann estimate when the test is "rank"
    low: float | None  # repeated interval: the differences that this look's bound does not reject
    high: float | None
    simultaneous_low: float | None  # interval at the share held first: those of all comparisons hold at once
    simultaneous_high: float | None
    crossed: bool
    small: bool  # pairs enough, and the simultaneous interval and the mean lie within the margin
    equivalence_p: float | None  # asked of each one-sided test at the margin: the first share's bound_p; None likewise
    equivalence_low: float | None  # interval at twice equivalence_p, or at half the e-value of the first share
    equivalence_high: float | None
    equivalent: bool  # the bound was not reached, and that interval lies inside +-margin
    futility_p: float | None = None  # asked of each one-sided test at the margin to stop here; None: no such stop
    futility_low: float | None = None  # interval at twice futility_p
    futility_high: float | None = None
    futile: bool = False  # nothing else was decided, and that interval lies inside +-margin


@dataclass(frozen=True)
class LookData:
    """Estimate and test of the pairs of one look, before any bound."""

    pairs: int
    effect: AdjustedDifference | None
    a: tuple[float, ...]  # endpoints
    b: tuple[float, ...]
    p: float | None
    mean: float | None  # what the test estimates
    average: float | None  # what is to be estimated; differs from `mean` under the rank test only
    of_average: AdjustedDifference | None  # unadjusted t of `average`: must agree under the rank test on what is small


def look_data(design: Design, replicates: int, pairs: Sequence[Pair]) -> LookData:
    """Estimate and test the pairs of the first `replicates`; p and means are None where nothing can be tested."""
    used = [pair for pair in pairs if pair.replicate < replicates]
    a, b = tuple(pair.a for pair in used), tuple(pair.b for pair in used)
    sides = [(pair.position_a, pair.position_b) for pair in used]
    if len(used) >= LEAST_PAIRS and mixed_up(design, sides):  # as lost replicates can leave them: a later look decides
        return LookData(
            pairs=len(used), effect=None, a=a, b=b, p=None, mean=None, average=None, of_average=None
        )
    if design.test == "rank" and used and not _anytime(design, replicates):
        rank = signed_rank(a, b)
        p = None if degenerate(a, b) or not rank.n else rank.p
        average = math.fsum(x - y for x, y in zip(a, b, strict=True)) / len(a)
        return LookData(
            pairs=len(used), effect=None, a=a, b=b, p=p, mean=rank.estimate, average=average,
            of_average=adjusted_difference(a, b, sides, 1),
        )  # fmt: skip
    effect = adjusted_difference(a, b, sides, design.positions if design.adjusted else 1)
    if effect is None:
        return LookData(
            pairs=len(used), effect=None, a=a, b=b, p=None, mean=None, average=None, of_average=None
        )
    return LookData(
        pairs=len(used), effect=effect, a=a, b=b, p=effect.p, mean=effect.mean, average=effect.mean,
        of_average=None,
    )  # fmt: skip


def mixed_up(design: Design, sides: Sequence[tuple[int, int]]) -> bool:
    """Return whether effects of positions alone could explain these pairs. `sides`: positions of a and b, per pair."""
    noise = design.positions_drawn or not design.positions_matter or design.positions < 2
    return not noise and not told_apart(sides)


def _anytime(design: Design, replicates: int) -> bool:
    return design.anytime_after is not None and replicates > design.anytime_after


def take_look(design: Design, replicates: int, data: LookData, n_open: int) -> Look:
    """Test the pairs against the bounds that hold while `n_open` comparisons share alpha."""
    if _anytime(design, replicates):
        return _anytime_look(design, replicates, data, n_open)
    bound = first = twice = None
    if design.boundaries:
        at = design.looks.index(replicates)
        bound, first = (design.boundary(n).nominal_p[at] for n in (n_open, len(design.comparisons)))
        twice = 2.0 * first  # two one-sided tests at `first`
    interval, simultaneous, equal = (_interval(design, data, p) for p in (bound, first, twice))
    reached = data.p is not None and bound is not None and bound > 0.0 and data.p <= bound
    crossed = reached and _crosses(data, interval)
    equivalent = not reached and _small(data, equal, design.margin, twice)
    look = Look(
        replicates=replicates, pairs=data.pairs, alpha=design.alpha / n_open, bound_p=bound, bound_e=None,
        p=data.p, e=None, mean=data.mean, **_limits(interval, simultaneous, equal), equivalence_p=first,
        crossed=crossed, small=_small(data, simultaneous, design.margin, first), equivalent=equivalent, futile=False,
    )  # fmt: skip
    stop = design.futility.nominal_p[design.looks.index(replicates)] if design.futility is not None else 0.0
    return _with_futility(look, data, stop, design) if stop else look


def _with_futility(look: Look, data: LookData, stop: float, design: Design) -> Look:
    """Return the look with its interval at twice `stop`, and whether that stops a comparison that is not decided."""
    interval = _interval(design, data, 2.0 * stop)
    low, high = interval or (None, None)
    unlikely = _small(data, interval, design.margin, 2.0 * stop, LEAST_PAIRS)
    futile = unlikely and not look.crossed and not look.equivalent
    return msgspec.structs.replace(look, futility_p=stop, futility_low=low, futility_high=high, futile=futile)


def _limits(interval: Interval, simultaneous: Interval, equal: Interval) -> dict[str, float | None]:
    """Return the fields of a Look that its three intervals make."""
    named = ("", interval), ("simultaneous_", simultaneous), ("equivalence_", equal)
    low = {f"{name}low": found[0] if found else None for name, found in named}
    return low | {f"{name}high": found[1] if found else None for name, found in named}


def _interval(design: Design, data: LookData, p: float | None) -> Interval:
    """Return the differences that the design's test does not reject at two-sided `p`."""
    if not p or data.p is None:
        return None
    if design.test == "rank":
        return hodges_lehmann_interval(data.a, data.b, p)
    return data.effect.interval(p) if data.effect else None


def _anytime_look(design: Design, replicates: int, data: LookData, n_open: int) -> Look:
    bound, first = design.evidence * n_open, design.evidence * len(design.comparisons)
    effect, log_e = data.effect, None
    interval: Interval = None
    simultaneous: Interval = None
    equal: Interval = None
    if effect is not None and effect.t is not None and effect.se is not None:
        log_e = log_evidence(effect.t, effect.df, effect.information)
        interval, simultaneous, equal = (
            anytime_interval(effect.mean, effect.se, effect.df, effect.information, e)
            for e in (bound, first, first / 2.0)
        )
    reached = log_e is not None and log_e >= math.log(bound)
    return Look(
        replicates=replicates, pairs=data.pairs, alpha=design.alpha / n_open, bound_p=None, bound_e=bound, p=None,
        e=None if log_e is None else math.exp(min(log_e, _LARGEST_LOG)), mean=data.mean,
        **_limits(interval, simultaneous, equal), equivalence_p=None,
        crossed=reached and _crosses(data, interval), small=_small(data, simultaneous, design.margin),
        equivalent=not reached and _small(data, equal, design.margin), futile=False,
    )  # fmt: skip


def _crosses(data: LookData, interval: Interval) -> bool:
    """Return whether a test that reached its bound may claim a difference: pairs, estimate, mean, interval agree.

    With ties a rank test can reject at an estimate of 0 or beside an interval that holds 0; and what most pairs show
    the mean may contradict.
    """
    if data.pairs < LEAST_PAIRS or not data.mean or data.average is None or interval is None:
        return False
    above = data.mean > 0.0
    return (interval[0] > 0.0 and data.average > 0.0) if above else (interval[1] < 0.0 and data.average < 0.0)


def _small(
    data: LookData, interval: Interval, margin: float, p: float | None = None, least: int = LEAST_EQUIVALENCE_PAIRS
) -> bool:
    """Return whether there are `least` pairs, and the interval and the mean lie within the margin.

    Ranks hardly see rare collapses, in which all of a mean difference can lie: under the rank test the interval of the
    mean at two-sided `p` must lie there, too.
    """
    if data.pairs < least or data.average is None or interval is None:
        return False
    if data.of_average is not None:
        also = data.of_average.interval(p) if p else None
        if also is None or not -margin < also[0] <= also[1] < margin:
            return False
    return -margin < interval[0] and interval[1] < margin and abs(data.average) < margin
