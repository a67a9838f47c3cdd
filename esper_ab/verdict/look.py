"""One look at one comparison: the test of its pairs, the intervals, and the claims that the bounds allow. Pure.

The module handles one comparison at one look; `looks` divides alpha among comparisons.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from esper_ab.design.counterbalance import identified
from esper_ab.design.design import Design
from esper_ab.stats.adjusted_difference import AdjustedDifference, PriorVariance, adjusted_difference
from esper_ab.stats.floats import Floats
from esper_ab.stats.item_difference import item_difference
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_OPEN_ENDED_PAIRS, LEAST_PAIRS
from esper_ab.stats.moderated_variance import moderated
from esper_ab.stats.pair import Data, Samples, before, outcomes
from esper_ab.stats.proportions import Proportions, proportions
from esper_ab.stats.score_test import score_difference
from esper_ab.stats.welch import welch
from esper_ab.verdict.any_shape import ShapeIntervals, hull, shape_intervals
from esper_ab.verdict.backed_by_signs import is_backed_by_signs
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.effect import Effect
from esper_ab.verdict.not_worse import NotWorse, not_worse_at, one_sided_p
from esper_ab.verdict.sample import least_small, sample_of

_LARGEST_LOG = 700.0  # exp() of more would overflow; a larger e-value would say no more
Interval = tuple[float, float] | None


class _Tested(msgspec.Struct, frozen=True, kw_only=True):
    """The test at one look; the numbers are those of `Look`."""

    p: float | None = None
    e: float | None = None
    bound_p: float | None = None
    bound_e: float | None = None
    equivalence_p: float | None = None
    reached: bool = False  # the bound
    repeated: Interval = None
    simultaneous: Interval = None
    equivalence: Interval = None
    not_worse_p: float | None = None  # one-sided; None under the anytime-valid rule
    not_worse: Interval = None
    shape: ShapeIntervals | UnsetType = UNSET


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
    # Enough pairs, and the simultaneous interval lies within the margin. In a plan that claims that a is not worse, an
    # a that is worse only needs that claim.
    small: bool
    equivalence_p: float | None  # required of each one-sided test at the margin: bound_p at the first share, or None
    equivalence_low: float | None  # interval at twice equivalence_p or half the first e-value (proportions: at it)
    equivalence_high: float | None
    equivalent: bool  # the bound was not reached, and the equivalence interval lies inside +-margin
    futility_p: float | None = None  # required of each one-sided test at the margin to stop here; None: no such stop
    futility_low: float | None = None  # interval at twice futility_p (proportions: at it)
    futility_high: float | None = None
    futile: bool = False  # nothing else was decided, and the futility interval lies inside +-margin
    not_worse: NotWorse | UnsetType = UNSET  # in a plan that claims it; left out of others
    prior: PriorVariance | UnsetType = UNSET  # of a moderated t; UNSET: the test has the comparison's own variance
    # Of the evidence for any shape; unset: no claim needs it. All intervals above contain those of this evidence, too.
    shape: ShapeIntervals | UnsetType = UNSET

    @property
    def non_inferiority(self) -> NotWorse | None:
        """The one-sided test at the margin; None if the plan does not ask for it."""
        return None if isinstance(self.not_worse, UnsetType) else self.not_worse

    @property
    def shows_not_worse(self) -> bool:
        """True if this look shows that a is not worse by the margin or more."""
        return self.non_inferiority is not None and self.non_inferiority.shown

    @property
    def any_shape(self) -> Interval:
        """The repeated interval of the evidence for any shape; None if no claim needs it."""
        return None if isinstance(self.shape, UnsetType) else self.shape.repeated

    @property
    def for_any_shape(self) -> bool:
        """True if the intervals hold whatever the shapes of the groups' distributions."""
        return self.any_shape is not None

    @property
    def bound_reached(self) -> bool:
        """True if the test's p or e-value reached its bound, which alone decides nothing."""
        if self.bound_p is not None:
            return self.p is not None and 0.0 < self.bound_p >= self.p
        return self.e is not None and self.bound_e is not None and self.e >= self.bound_e


def effect_of(design: Design, data: Data, items: ComparedItems | None = None) -> Effect | None:
    """Estimate and test the difference of two groups; None if it cannot be estimated.

    Only this function chooses the test, which depends on whether runs are paired, on whether all outcomes are 0 or 1,
    and on the `items` below them: their choice is a source of noise, and items of a cluster vary together.
    """
    if items is not None and not items.plain:
        scores = items.scores(data)
        return None if scores is None else item_difference(scores, items.level)
    a, b = outcomes(data)
    success = _success(design, a, b)
    if success is not None and data:
        if design.test == "z":
            return _scored(a, b, success)
        return proportions(a, b, success, paired=not isinstance(data, Samples))
    if isinstance(data, Samples):
        return welch(a, b)
    positions = design.positions if design.adjusted else 1
    return adjusted_difference(a, b, data.sides, positions)


def _scored(a: Floats, b: Floats, success: float) -> Proportions:
    """Compare the outcomes a [n] and b [m] by the pooled z test and the score interval."""
    return score_difference(int(np.sum(a == success)), a.size, int(np.sum(b == success)), b.size, success)


def _success(design: Design, a: Floats, b: Floats) -> float | None:
    """Return the value of a success if every outcome is 0 or that value: 1, or 100 in percent; else None.

    A margin of at least that value shows that outcomes other than 0 or 1 are possible.
    """
    outcome = design.outcome
    values = [1.0]
    if outcome.unit == "%":
        values = [100.0, 1.0]
    for value in values:
        possible = outcome.high in (None, value) and design.margin < value
        if possible and all(_are_counts(outcomes_of_group, value) for outcomes_of_group in (a, b)):
            return value
    return None


def _are_counts(values: Floats, success: float) -> bool:
    """True if each of `values` is 0 or `success`."""
    return bool(np.all((values == 0.0) | (values == success)))


def _is_confounded(design: Design, used_data: Data) -> bool:
    """True if position effects alone could explain these pairs, as lost replicates can cause; a later look decides."""
    is_harmless = design.positions_drawn or not design.positions_matter or design.positions < 2
    if is_harmless or isinstance(used_data, Samples) or len(used_data) < LEAST_PAIRS:
        return False
    return not identified([{"a": (a,), "b": (b,)} for a, b in used_data.sides.tolist()])


def own_effect(design: Design, used_data: Data, items: ComparedItems | None = None) -> Effect | None:
    """Return the effect with the comparison's own variance; None if it cannot be told from those of positions."""
    return None if _is_confounded(design, used_data) else effect_of(design, used_data, items)


def with_prior(effect: Effect | None, prior: PriorVariance | UnsetType) -> Effect | None:
    """Return the effect with the moderated t, if there is a prior and the test is a t of pairs."""
    if isinstance(prior, UnsetType) or not isinstance(effect, AdjustedDifference) or effect.name:
        return effect
    return moderated(effect, prior)


def take_look(
    design: Design,
    replicates: int,
    data: Data,
    n_open: int,
    items: ComparedItems | None = None,
    prior: PriorVariance | UnsetType = UNSET,
) -> Look:
    """Test the pairs of the first `replicates` replicates, with the scores `items` below them, at the bounds.

    `n_open` comparisons share alpha. `prior`: the variance that they share.
    """
    used_data = before(data, replicates)
    effect = with_prior(own_effect(design, used_data, items), prior)
    pairs = len(used_data)
    sample = sample_of(effect, pairs, items)
    alpha = design.alpha / n_open
    margin = design.margin
    least_pairs = least_small(design, replicates, sample, items)
    tested_effect = _widened(_tested(design, replicates, effect, n_open), design, used_data, effect, n_open)
    low, high = _limits(tested_effect.repeated)
    simultaneous_low, simultaneous_high = _limits(tested_effect.simultaneous)
    equivalence_low, equivalence_high = _limits(tested_effect.equivalence)
    is_crossing = tested_effect.reached and _excludes_zero(tested_effect.repeated) and sample.suffices
    if tested_effect.bound_e is None:
        is_crossing = is_crossing and is_backed_by_signs(used_data, effect, alpha)
    is_within = _small(pairs, tested_effect.equivalence, margin, least_pairs)
    look = Look(
        replicates=replicates,
        pairs=pairs,
        alpha=alpha,
        bound_p=tested_effect.bound_p,
        bound_e=tested_effect.bound_e,
        p=tested_effect.p,
        e=tested_effect.e,
        mean=None if effect is None else effect.mean,
        low=low,
        high=high,
        simultaneous_low=simultaneous_low,
        simultaneous_high=simultaneous_high,
        crossed=is_crossing,
        small=is_within and _small(pairs, tested_effect.simultaneous, margin, least_pairs),
        equivalence_p=tested_effect.equivalence_p,
        equivalence_low=equivalence_low,
        equivalence_high=equivalence_high,
        equivalent=is_within and not tested_effect.reached,
        prior=effect.prior if isinstance(effect, AdjustedDifference) else UNSET,
        shape=tested_effect.shape,
    )
    return _add_further_tests(look, design, effect, tested_effect, enough=sample.suffices)


def _add_further_tests(
    look: Look, design: Design, effect: Effect | None, tested_effect: _Tested, *, enough: bool
) -> Look:
    """Return the look with the tests that only some designs have: of NOT WORSE, or of a stop for futility."""
    if design.non_inferiority is not None:
        return _add_not_worse(look, design, effect, tested_effect, enough=enough)
    if look.bound_e is not None or design.futility is None:
        return look
    stop = design.futility.nominal_p[design.looks.index(look.replicates)]
    return _add_futility(look, effect, stop, design.margin) if stop else look


def _widened(tested_effect: _Tested, design: Design, used_data: Data, effect: Effect | None, n_open: int) -> _Tested:
    """Return the test with intervals that hold for any shape, if the plan asks for it and the test assumes a shape.

    It has then reached its bound only if these intervals exclude 0.
    """
    if not design.any_shape or isinstance(effect, Proportions):
        return tested_effect
    any_shape = shape_intervals(design, used_data, n_open)
    if any_shape is None:  # there are no pairs
        return tested_effect
    hull_of_repeated = hull(tested_effect.repeated, any_shape.repeated)
    return msgspec.structs.replace(
        tested_effect,
        reached=tested_effect.reached and _excludes_zero(hull_of_repeated),
        repeated=hull_of_repeated,
        simultaneous=hull(tested_effect.simultaneous, any_shape.simultaneous),
        equivalence=hull(tested_effect.equivalence, any_shape.equivalence),
        not_worse=hull(tested_effect.not_worse, any_shape.equivalence),
        shape=any_shape,
    )


def _excludes_zero(interval: Interval) -> bool:
    return interval is not None and (interval[0] > 0.0 or interval[1] < 0.0)


def _limits(interval: Interval) -> tuple[float | None, float | None]:
    return interval or (None, None)


def _tested(design: Design, replicates: int, effect: Effect | None, n_open: int) -> _Tested:
    """Test at the bounds that hold after `replicates` replicates."""
    if design.anytime_after is not None and replicates > design.anytime_after:
        return _anytime(design, effect, n_open)
    return _planned(design, replicates, effect, n_open)


def _planned(design: Design, replicates: int, effect: Effect | None, n_open: int) -> _Tested:
    """Test at the bounds of a planned look."""
    p = None if effect is None else effect.p
    if not design.boundaries:
        return _Tested(p=p)
    look_index = design.looks.index(replicates)
    bound = design.boundary(n_open).nominal_p[look_index]
    first_p = design.boundary(len(design.comparisons)).nominal_p[look_index]
    not_worse_p = 0.0
    if design.non_inferiority is not None:
        not_worse_p = design.non_inferiority.nominal_p[look_index]
    return _Tested(
        p=p,
        bound_p=bound,
        equivalence_p=first_p,
        reached=p is not None and bound > 0.0 and p <= bound,
        repeated=_interval(effect, bound),
        simultaneous=_interval(effect, first_p),
        equivalence=_interval(effect, first_p, one_sided=True),
        not_worse_p=not_worse_p,
        not_worse=_interval(effect, not_worse_p, one_sided=True),
    )


def _anytime(design: Design, effect: Effect | None, n_open: int) -> _Tested:
    """Test at the bounds of the anytime-valid rule."""
    bound = design.evidence * n_open
    if effect is None:
        return _Tested(bound_e=bound)
    first_evidence = design.evidence * len(design.comparisons)
    log_e = effect.log_evidence()
    e = None
    if log_e is not None:
        e = math.exp(min(log_e, _LARGEST_LOG))
    one_sided_evidence = first_evidence if isinstance(effect, Proportions) else first_evidence / 2.0
    one_sided_interval = effect.anytime_interval(one_sided_evidence)
    return _Tested(
        e=e,
        bound_e=bound,
        reached=log_e is not None and log_e >= math.log(bound),
        repeated=effect.anytime_interval(bound),
        simultaneous=effect.anytime_interval(first_evidence),
        equivalence=one_sided_interval,
        not_worse=one_sided_interval,
    )


def _add_futility(look: Look, effect: Effect | None, stop: float, margin: float) -> Look:
    """Return the look with its interval at twice `stop`, and whether that interval stops an undecided comparison."""
    interval = _interval(effect, stop, one_sided=True)
    low, high = _limits(interval)
    is_undecided = not look.crossed and not look.equivalent
    is_futile = is_undecided and _small(look.pairs, interval, margin, LEAST_PAIRS)
    return msgspec.structs.replace(look, futility_p=stop, futility_low=low, futility_high=high, futile=is_futile)


def look_at_claim(design: Design, replicates: int, data: Data) -> NotWorse:
    """Test only whether a is not worse, at the pairs of the first `replicates` replicates; the plan asks for it."""
    used_data = before(data, replicates)
    effect = own_effect(design, used_data)
    tested_effect = _tested(design, replicates, effect, len(design.comparisons))
    return _test_claim(design, effect, tested_effect, len(used_data), anytime=tested_effect.bound_e is not None)


def _add_not_worse(look: Look, design: Design, effect: Effect | None, tested: _Tested, *, enough: bool) -> Look:
    """Return the look with the one-sided test at the margin, which this plan asks for in place of EQUIVALENT."""
    not_worse = _test_claim(design, effect, tested, look.pairs if enough else 0, anytime=look.bound_e is not None)
    is_small = look.small
    if look.mean is not None and look.mean * design.outcome.sign < 0.0:
        is_small = not_worse.shown
    return msgspec.structs.replace(look, not_worse=not_worse, small=is_small, equivalent=False)


def _test_claim(design: Design, effect: Effect | None, tested: _Tested, pairs: int, *, anytime: bool) -> NotWorse:
    """Return the one-sided test at the margin; `pairs` are those that count for a claim."""
    least_pairs = LEAST_OPEN_ENDED_PAIRS if anytime else LEAST_EQUIVALENCE_PAIRS
    sign = design.outcome.sign
    p = None
    if effect is not None and not isinstance(effect, Proportions):
        p = one_sided_p(effect, sign, design.margin)
    return not_worse_at(
        tested.not_worse, p, tested.not_worse_p, sign=sign, margin=design.margin, enough=pairs >= least_pairs
    )


def _interval(effect: Effect | None, p: float, *, one_sided: bool = False) -> Interval:
    """Return the differences that the test does not reject at `p`.

    If `one_sided`, that neither one-sided test rejects.
    """
    if not p or effect is None or effect.p is None:
        return None
    if one_sided and not isinstance(effect, Proportions):  # for which an interval at twice p errs too often
        p *= 2.0
    return effect.interval(p)


def _small(pairs: int, interval: Interval, margin: float, least_pairs: int | None) -> bool:
    """True if there are `least_pairs` pairs (None: never) and the interval lies within the margin."""
    if least_pairs is None or pairs < least_pairs or interval is None:
        return False
    return -margin < interval[0] and interval[1] < margin
