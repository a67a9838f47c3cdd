"""One look at one comparison: the test of its pairs, the intervals, and the claims that the bounds allow. Pure.

The module handles one comparison at one look; `follow` divides alpha among comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Set

import msgspec
import numpy as np

from esper_ab.design.counterbalance import identified
from esper_ab.design.design import Design
from esper_ab.stats.adjusted_difference import AdjustedDifference, adjusted_difference
from esper_ab.stats.exact_signs import BACKED_BY_SIGNS, signs_p
from esper_ab.stats.least_pairs import LEAST_PAIRS, smallest_p
from esper_ab.stats.pair import Data, Samples, before, outcomes
from esper_ab.stats.proportions import Proportions, proportions
from esper_ab.stats.welch import welch

_LIMITS = ("low", "high", "simultaneous_low", "simultaneous_high", "equivalence_low", "equivalence_high")
_NOT_ASKED = dict[str, float | None].fromkeys(("bound_p", "bound_e", "p", "e", "equivalence_p"))
_LARGEST_LOG = 700.0  # exp() of more would overflow; a larger e-value would say no more
Interval = tuple[float, float] | None
Effect = AdjustedDifference | Proportions
# Numbers of a look, whether its bound is reached, and three intervals: repeated, simultaneous, for equivalence.
_Tested = tuple[dict[str, float | None], bool, tuple[Interval, ...]]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison at one look; a number that cannot be computed from the pairs is None."""

    replicates: int
    pairs: int  # in these replicates, without lost ones; if runs form no pairs, the runs of the smaller group
    alpha: float  # the comparison's share at this look
    bound_p: float | None  # required two-sided p; None at a look of the anytime-valid rule, or without any boundary
    bound_e: float | None  # required e-value; None at a planned look
    p: float | None  # of the design's test; None at a look of the anytime-valid rule
    e: float | None
    mean: float | None
    low: float | None  # repeated interval: the differences that this look's bound does not reject
    high: float | None
    simultaneous_low: float | None  # interval at the initial share of alpha: valid for all comparisons jointly
    simultaneous_high: float | None
    crossed: bool  # the bound is reached and, with few pairs, the exact sign-flip test agrees
    small: bool  # enough pairs, and the simultaneous interval lies within the margin
    equivalence_p: float | None  # required of each one-sided test at the margin: bound_p at the first share, or None
    equivalence_low: float | None  # interval at twice equivalence_p or half the first e-value (proportions: at it)
    equivalence_high: float | None
    equivalent: bool  # the bound was not reached, and the equivalence interval lies inside +-margin
    futility_p: float | None = None  # required of each one-sided test at the margin to stop here; None: no such stop
    futility_low: float | None = None  # interval at twice futility_p (proportions: at it)
    futility_high: float | None = None
    futile: bool = False  # nothing else was decided, and the futility interval lies inside +-margin


def effect_of(design: Design, data: Data) -> Effect | None:
    """Estimate and test the difference of two groups; None if it cannot be estimated.

    Only this function chooses the test, which depends on whether runs are paired and whether all outcomes are 0 or 1.
    """
    a, b = outcomes(data)
    one = _one(design, {*a, *b})
    if one is not None and data:
        return proportions(a, b, one, paired=not isinstance(data, Samples))
    if isinstance(data, Samples):
        return welch(a, b)
    sides = [(pair.position_a, pair.position_b) for pair in data]
    return adjusted_difference(a, b, sides, design.positions if design.adjusted else 1)


def _one(design: Design, seen: Set[float]) -> float | None:
    """Return the value of a success if every outcome is 0 or that value: 1, or 100 in percent; else None.

    A margin of at least that value shows that outcomes other than 0 or 1 are possible.
    """
    outcome = design.outcome
    ones = (100.0, 1.0) if design.outcome.unit == "%" else (1.0,)
    likely = (one for one in ones if outcome.high in (None, one) and design.margin < one)
    return next((one for one in likely if seen <= {0.0, one}), None)


def _mixed_up(design: Design, used: Data) -> bool:
    """True if position effects alone could explain these pairs, as lost replicates can cause; a later look decides."""
    noise = design.positions_drawn or not design.positions_matter or design.positions < 2
    if noise or isinstance(used, Samples) or len(used) < LEAST_PAIRS:
        return False
    return not identified([{"a": (pair.position_a,), "b": (pair.position_b,)} for pair in used])


def take_look(design: Design, replicates: int, data: Data, n_open: int) -> Look:
    """Test the pairs of the first `replicates` replicates at the bounds while `n_open` comparisons share alpha."""
    used = before(data, replicates)
    effect = None if _mixed_up(design, used) else effect_of(design, used)
    pairs = len(used)
    margin = design.margin
    least = design.least_small(replicates)
    anytime = design.anytime_after is not None and replicates > design.anytime_after
    asked, reached, intervals = (_anytime if anytime else _planned)(design, replicates, effect, n_open)
    interval, simultaneous, equal = intervals
    limits = [limit for found in intervals for limit in found or (None, None)]
    within = _small(pairs, equal, margin, least)
    crosses = interval is not None and (interval[0] > 0.0 or interval[1] < 0.0)
    crosses = crosses and (anytime or _backed(used, effect, design.alpha / n_open))
    look = Look(
        replicates=replicates,
        pairs=pairs,
        alpha=design.alpha / n_open,
        mean=effect.mean if effect else None,
        **{**_NOT_ASKED, **asked},
        **dict(zip(_LIMITS, limits, strict=True)),
        crossed=reached and crosses and pairs >= LEAST_PAIRS,
        small=within and _small(pairs, simultaneous, margin, least),
        equivalent=within and not reached,
        futile=False,
    )
    if anytime or design.futility is None:
        return look
    stop = design.futility.nominal_p[design.looks.index(replicates)]
    return _with_futility(look, effect, stop, margin) if stop else look


def _backed(used: Data, effect: Effect | None, alpha: float) -> bool:
    """True unless the exact sign-flip test must support the t-test of so few pairs at `alpha` and does not.

    It is not required if so few pairs could never reach `alpha`, as when many comparisons share it.
    """
    if isinstance(used, Samples) or not isinstance(effect, AdjustedDifference) or len(used) not in BACKED_BY_SIGNS:
        return True
    of = {one.position: one.mean for one in effect.positions}
    moved = [of.get(pair.position_a, 0.0) - of.get(pair.position_b, 0.0) for pair in used]
    p = float(signs_p(np.array([pair.a - pair.b for pair in used]) - moved))
    return p <= alpha or smallest_p(len(used)) > alpha


def _planned(design: Design, replicates: int, effect: Effect | None, n_open: int) -> _Tested:
    """Test at the bounds of a planned look."""
    p = effect.p if effect else None
    if not design.boundaries:
        return {"p": p}, False, (None, None, None)
    at = design.looks.index(replicates)
    bound, first = (design.boundary(n).nominal_p[at] for n in (n_open, len(design.comparisons)))
    asked = {"p": p, "bound_p": bound, "equivalence_p": first}
    reached = p is not None and bound > 0.0 and p <= bound
    equal = _interval(effect, first, one_sided=True)
    return asked, reached, (_interval(effect, bound), _interval(effect, first), equal)


def _anytime(design: Design, replicates: int, effect: Effect | None, n_open: int) -> _Tested:
    """Test at the bounds of the anytime-valid rule."""
    bound = design.evidence * n_open
    first = design.evidence * len(design.comparisons)
    log_e = effect.log_evidence() if effect else None
    asked = {"bound_e": bound, "e": None if log_e is None else math.exp(min(log_e, _LARGEST_LOG))}
    reached = log_e is not None and log_e >= math.log(bound)
    evidence = bound, first, first if isinstance(effect, Proportions) else first / 2.0
    return asked, reached, tuple(effect.anytime_interval(e) if effect else None for e in evidence)


def _with_futility(look: Look, effect: Effect | None, stop: float, margin: float) -> Look:
    """Return the look with its interval at twice `stop`, and whether that interval stops an undecided comparison."""
    interval = _interval(effect, stop, one_sided=True)
    low, high = interval or (None, None)
    futile = not look.crossed and not look.equivalent and _small(look.pairs, interval, margin, LEAST_PAIRS)
    return msgspec.structs.replace(look, futility_p=stop, futility_low=low, futility_high=high, futile=futile)


def _interval(effect: Effect | None, p: float, *, one_sided: bool = False) -> Interval:
    """Return the differences that the test does not reject at `p`.

    If `one_sided`, that neither one-sided test rejects.
    """
    p *= 1.0 + (one_sided and not isinstance(effect, Proportions))  # for which an interval at twice p errs too often
    return effect.interval(p) if p and effect and effect.p is not None else None


def _small(pairs: int, interval: Interval, margin: float, least: int | None) -> bool:
    """True if there are `least` pairs (None: never) and the interval lies within the margin."""
    if least is None or pairs < least or interval is None:
        return False
    return -margin < interval[0] and interval[1] < margin
