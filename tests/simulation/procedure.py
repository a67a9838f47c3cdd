"""The rules, by numpy and scipy alone and for many experiments at once. Nothing here comes from `esper_ab`.

A test is written as the value that |t| must reach at a look, for a share of alpha and a number of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALPHA = 0.05
LEAST, SMALL_LEAST = 6, 15  # pairs for a claim, and for a claim that a difference is small
SIGNED = (7, 8, *range(11, 21))  # pairs at which a claim also needs the exact sign-flip test
DRIFT_LEVEL = 0.01 / 2  # of each of the two tests of a drift, for one comparison
OPEN_ENDED_SMALL = 25  # pairs from which plans without a maximum may claim that
GRID = np.geomspace(ALPHA / 80, ALPHA, 13)  # shares of alpha at which bounds are calibrated


def default_looks(pairs: int) -> tuple[int, ...]:
    """The looks of a plan that names none."""
    half_look, later_look = (2 * round(share * pairs / 2) for share in (0.5, 0.7))
    if pairs < 16:
        return (pairs,)
    return (half_look, later_look, pairs) if half_look >= 14 else (max(later_look, 14), pairs)


def spent(share: float, alpha: Floats) -> Floats:
    """The part of alpha that is spent at that share of the pairs (Lan & DeMets, O'Brien-Fleming type)."""
    return np.asarray(4 * stats.norm.sf(stats.norm.isf(alpha / 4) / np.sqrt(share)))


@cache
def bounds(looks: tuple[int, ...], paths: int) -> Floats:
    """[looks, GRID] nominal p: normal differences cross at or before a look as often as has been spent by then."""
    rng = np.random.default_rng(20_000)
    total, squares, t, previous_look = np.zeros(paths), np.zeros(paths), np.zeros((len(looks), paths)), 0
    for k, n in enumerate(looks):
        new_pairs, previous_look = n - previous_look, n
        step = rng.standard_normal(paths) * np.sqrt(new_pairs)
        total += step
        squares += step**2 / new_pairs + (rng.chisquare(new_pairs - 1, paths) if new_pairs > 1 else 0)
        t[k] = np.abs(total / np.sqrt(n) / np.sqrt((squares - total**2 / n) / (n - 1)))
    least_t = stats.t.isf(ALPHA * 0.6, np.array(looks)[:, None] - 1)  # no bound lies below: the others never cross
    t = t[:, (t > least_t).any(0)]
    bound_table = np.zeros((len(looks), len(GRID)))
    for g, alpha in enumerate(GRID):
        has_crossed = np.zeros(t.shape[1], bool)
        for k, n in enumerate(looks):
            spent_alpha = spent(n / looks[-1], alpha)
            if k == 0:  # whose law is known
                bound_table[k, g] = spent_alpha
            else:
                open_t = np.sort(t[k, ~has_crossed])
                bound_table[k, g] = 2 * stats.t.sf(
                    open_t[-max(round(spent_alpha * paths) - int(has_crossed.sum()), 1)], n - 1
                )
            has_crossed |= t[k] >= stats.t.isf(bound_table[k, g] / 2, n - 1)
    return bound_table


@dataclass(frozen=True)
class Rule:
    """When it is looked, and which |t| decides then."""

    looks: tuple[int, ...]
    anytime: bool = False  # the looks are those of a plan without a maximum
    small_from: int = 0  # the first look that may call a difference small; 0: only the last one
    paths: int = 2_000_000  # normal experiments that calibrate the bounds

    def small(self, look: int) -> bool:
        """Whether that look may call a difference small, if it has the pairs."""
        return self.looks[look] >= self.small_from if self.small_from else look == len(self.looks) - 1

    def nominal(self, look: int, alpha: Floats) -> Floats:
        """The bound for p at that look."""
        return np.asarray(np.exp(np.interp(np.log(alpha), np.log(GRID), np.log(bounds(self.looks, self.paths)[look]))))

    def critical(self, look: int, alpha: Floats, sides: int = 2) -> Floats:
        """[alpha, pairs from 0 on] the |t| that decides; with `sides` 1 that of each of two one-sided tests."""
        n = np.arange(self.looks[look] + 1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.anytime:  # a normal mixture with g = 1 over the standardised mean
                c = 1 / (1 + n)
                q = (sides / 2 / alpha[:, None] / np.sqrt(c)) ** (2 / n)
                t = np.where(c * q < 1, np.sqrt((n - 1) * (q - 1) / (1 - c * q)), np.inf)
            else:
                t = stats.t.isf(self.nominal(look, alpha)[:, None] / sides, n - 1)
        return np.where(n < LEAST, np.inf, t)


@dataclass
class Outcome:
    """What became of each comparison [experiments, comparisons]."""

    crossed: Floats  # +1: the first is shown to be higher, -1: lower, 0: not crossed
    equivalent: Bools
    below: Bools  # crossed, and smaller than the margin
    look: NDArray[np.int64]  # the last that was taken
    pairs: NDArray[np.int64]  # of that look
    low: Floats  # repeated interval of that look
    high: Floats
    first_low: Floats  # the same at the share held first
    first_high: Floats

    @property
    def decided(self) -> Bools:
        """Whether it stopped."""
        return (self.crossed != 0) | self.equivalent

    def not_worse(self, margin: float) -> tuple[Bools, Bools]:
        """Whether the gate holds for the first, and for the second group of a comparison."""
        open_ = (self.crossed == 0) & (self.pairs >= SMALL_LEAST)
        is_small = self.equivalent | self.below
        return (
            is_small | (self.crossed > 0) | (open_ & (self.low > -margin)),
            is_small | (self.crossed < 0) | (open_ & (self.high < margin)),
        )


def degenerate(d: Floats) -> Bools:
    """More than half of the differences are one and the same amount, and fewer than six others: no test applies."""
    equal_pairs = (np.abs(d - np.median(d, -1)[..., None]) <= 1e-9).sum(
        -1
    )  # where more than half agree, it is the median
    return np.asarray((2 * equal_pairs > d.shape[-1]) & (d.shape[-1] - equal_pairs < LEAST))


def sums_of_signs(d: Floats) -> Floats:
    """[2^pairs] the sums of differences d [pairs] under all patterns of signs."""
    return np.asarray(_signs(len(d)) @ d)


@cache
def _signs(pairs: int) -> Floats:
    return np.asarray(1.0 - 2 * ((np.arange(2**pairs)[:, None] >> np.arange(pairs)) & 1), np.float64)


def supported(d: Floats, alpha: float) -> bool:
    """Whether the sign-flip test of differences d [pairs] supports a claim at alpha, or cannot: it needs more pairs
    than there are. Every sum is one of the first half plus one of the second."""
    pairs, least_sum = len(d), abs(d.sum()) - 1e-12 * np.abs(d).sum()
    first_sums, second_sums = np.sort(sums_of_signs(d[: pairs // 2])), sums_of_signs(d[pairs // 2 :])
    counts_above = len(first_sums) - np.searchsorted(first_sums, least_sum - second_sums, "left")
    return bool(2 * counts_above.sum() / 2**pairs <= alpha or 2 / 2**pairs > alpha)


def signed(claims: Bools, d: Floats, presence: Bools | None, alpha: Floats) -> Bools:
    """The `claims` [...] from differences d [..., pairs] that pass that test at alpha [...], or have numbers of pairs
    that do not need it. `presence` [..., pairs]: the pairs that there are."""
    present_mask = np.broadcast_to(True if presence is None else presence, d.shape)
    rows = zip(d[claims], present_mask[claims], np.broadcast_to(alpha, claims.shape)[claims], strict=True)
    kept_claims = claims.copy()
    kept_claims[claims] = [
        mask.sum() not in SIGNED or supported(differences[mask], share) for differences, mask, share in rows
    ]
    return kept_claims


def drifts(d: Floats) -> Bools:
    """Whether the differences d [experiments, pairs], in their order, have a trend or are autocorrelated."""
    n = d.shape[1]
    x = np.arange(n) - (n - 1) / 2
    e = d - d.mean(1, keepdims=True)
    slope = e @ x / (x @ x)
    residual_variance = ((e**2).sum(1) - slope**2 * (x @ x)) / (n - 2)
    trend_p = 2.0 * stats.t.sf(np.abs(slope) / np.sqrt(residual_variance / (x @ x)), n - 2)
    r = (e[:, 1:] * e[:, :-1]).sum(1) / (e**2).sum(1)
    z = (r + 1.0 / n) * n * np.sqrt(n - 1) / (n - 2)
    return np.asarray((trend_p <= DRIFT_LEVEL) | (stats.norm.sf(z) <= DRIFT_LEVEL))


def follow(d: Floats, rule: Rule, margin: float, presence: Bools | None = None, coarse: bool = False) -> Outcome:
    """All looks of experiments with differences d [experiments, comparisons, replicates], with every stop.

    `presence`: the replicates that have a pair. `coarse`: equal differences can occur; every replicate has a pair then.
    """
    shape, m = d.shape[:2], d.shape[1]
    flags, numbers = (np.zeros(shape, bool) for _ in range(2)), (np.zeros(shape) for _ in range(4))
    state = Outcome(np.zeros(shape), *flags, *(np.zeros(shape, int) for _ in range(2)), *numbers)
    has_passed = np.zeros(shape, bool)
    total, squares, pairs, begin = np.zeros(shape), np.zeros(shape), np.zeros(shape, int), 0
    for k, end in enumerate(rule.looks):
        block, block_mask = d[..., begin:end], True if presence is None else presence[..., begin:end]
        block, begin = np.where(block_mask, block, 0.0), end
        total, squares = total + block.sum(-1), squares + (block**2).sum(-1)
        pairs = pairs + (block.shape[-1] if presence is None else np.sum(block_mask, -1))
        is_open = ~state.decided
        if not is_open.any():
            break
        n = np.maximum(pairs, 2)
        mean = total / n
        se = np.sqrt(np.maximum(squares - n * mean**2, 0) / (n - 1) / n)
        can_test = is_open & (se > 1e-9)
        if coarse:
            can_test[is_open] &= ~degenerate(d[..., :end][is_open])
        by_open = rule.critical(k, ALPHA / np.arange(1, m + 1))
        is_decided, reach = np.zeros(shape, bool), np.zeros(shape)
        while True:
            open_ = np.maximum(m - has_passed.sum(1), 1)[:, None]
            reach = np.where(is_decided, reach, by_open[open_ - 1, pairs] * np.maximum(se, 1e-300))  # the share is kept
            claims = can_test & ~is_decided & (np.abs(mean) >= reach)
            if not rule.anytime:
                claims = signed(claims, d[..., :end], None if presence is None else presence[..., :end], ALPHA / open_)
            if not claims.any():
                break
            is_decided |= claims
            has_passed |= claims & (np.abs(mean) - reach > margin)
        state.crossed = np.where(is_decided, np.sign(mean), state.crossed)
        share = np.array([ALPHA / m])
        reach_1, side_reach = (rule.critical(k, share, sides)[0][pairs] * np.maximum(se, 1e-300) for sides in (2, 1))
        if rule.small(k):
            state.below |= is_decided & (pairs >= SMALL_LEAST) & (np.abs(mean) + reach_1 < margin)
            state.equivalent |= (
                can_test & (np.abs(mean) < reach) & (pairs >= SMALL_LEAST) & (np.abs(mean) + side_reach < margin)
            )
        reach, reach_1 = np.where(can_test, reach, np.inf), np.where(can_test, reach_1, np.inf)
        limits = {"low": mean - reach, "high": mean + reach, "first_low": mean - reach_1, "first_high": mean + reach_1}
        for name, value in {"look": k, "pairs": pairs, **limits}.items():
            setattr(state, name, np.where(is_open, value, getattr(state, name)))
    return state


def anytime(pair_limit: int, small_from: int = OPEN_ENDED_SMALL) -> Rule:
    """A plan without a maximum, followed to `pair_limit` pairs."""
    return Rule(tuple(range(LEAST, pair_limit + 1)), anytime=True, small_from=small_from)


def comparisons(groups: int, against: bool) -> list[tuple[int, int]]:
    """All pairs, or every other group against the last."""
    return [(g, groups - 1) for g in range(groups - 1)] if against else list(combinations(range(groups), 2))


def false_claims(state: Outcome, true_difference: Floats, margin: float) -> Bools:
    """[experiments, comparisons] wrong sign, a difference that is not there, or one of the margin called small."""
    wrong_claims = ((state.crossed > 0) & (true_difference <= 0)) | ((state.crossed < 0) & (true_difference >= 0))
    return np.asarray(wrong_claims | ((state.equivalent | state.below) & (np.abs(true_difference) >= margin - 1e-12)))


@dataclass(frozen=True)
class Losses:
    """Runs of two groups [experiments, replicates]: who failed, and whose partner was cancelled."""

    a: Floats
    b: Floats
    failed_a: Bools
    failed_b: Bools
    cancelled: Bools  # where one failed, the other was cancelled; else it is there


def _retaken(
    imputed_values: tuple[Floats, Floats],
    runs: Sequence[Floats],
    failed_masks: Sequence[Bools],
    critical_t: Sequence[float],
) -> list[tuple[Floats, Floats]]:
    """Intervals (that of the test, that of equivalence) of a look at which failed runs came to `imputed_values`."""
    x, y = (np.where(f, g, v) for f, g, v in zip(failed_masks, imputed_values, runs, strict=True))
    d = x - y
    with np.errstate(invalid="ignore"):
        mean, se = d.mean(1), d.std(1, ddof=1) / np.sqrt(d.shape[1])
        return [(mean - t * se, mean + t * se) for t in critical_t]


def settle(runs: Losses, rule: Rule, margin: float, worst_value: float | None) -> tuple[Outcome, Outcome]:
    """One comparison as the observed pairs decide it, and as it may be said with the runs that were lost."""
    failed_masks = [runs.failed_a, runs.failed_b]
    d, whole = (runs.a - runs.b)[:, None], ~(failed_masks[0] | failed_masks[1])[:, None]
    observed, settled = follow(d, rule, margin, whole), follow(d, rule, margin, whole)
    seen_values = [
        np.where(f | (runs.cancelled & o), np.nan, v)
        for f, o, v in zip(failed_masks, failed_masks[::-1], (runs.a, runs.b), strict=True)
    ]
    for k, n in enumerate(rule.looks):
        indices = np.flatnonzero(observed.look[:, 0] == k)
        values, lost_masks = [v[indices, :n] for v in seen_values], [f[indices, :n] for f in failed_masks]
        best_value = np.nanmax(np.concatenate(values, 1), 1, keepdims=True)
        least_value = np.nanmin(np.concatenate(values, 1), 1, keepdims=True)
        low = np.minimum(least_value, -np.inf if worst_value is None else worst_value)  # with -inf no test crosses
        values = [np.where(np.isnan(v), np.nanmean(v, 1, keepdims=True), v) for v in values]
        critical_t = [float(rule.critical(k, np.array([ALPHA]), sides)[0][n]) for sides in (2, 1)]
        intervals_up, intervals_down = (
            _retaken(imputed_values, values, lost_masks, critical_t)
            for imputed_values in ((low, best_value), (best_value, low))
        )
        counts = [f.sum(1) for f in lost_masks]
        crossings, has_no_loss = observed.crossed[indices, 0], counts[0] + counts[1] == 0
        still_crossed = has_no_loss | np.where(crossings > 0, intervals_up[0][0] >= 0, intervals_down[0][1] <= 0)
        has_even_losses = (counts[0] == counts[1]) & (counts[0] <= 1) & (worst_value is not None)
        is_below, equivalent = (
            has_no_loss | (has_even_losses & (u[0] > -margin) & (o[1] < margin))
            for u, o in zip(intervals_up, intervals_down, strict=True)
        )
        settled.crossed[indices, 0] = np.where(still_crossed, crossings, 0)
        settled.below[indices, 0] &= is_below & still_crossed
        excludes_zero = [
            (low_limit >= 0) | (high_limit <= 0) for low_limit, high_limit in (intervals_up[0], intervals_down[0])
        ]  # then it shows a difference
        settled.equivalent[indices, 0] &= equivalent & (has_no_loss | ~(excludes_zero[0] | excludes_zero[1]))
        open_ = ~has_no_loss & (settled.crossed[indices, 0] == 0)  # what a gate then asks of the interval
        settled.low[indices, 0] = np.where(
            open_, np.where(has_even_losses, intervals_up[0][0], -np.inf), settled.low[indices, 0]
        )
        settled.high[indices, 0] = np.where(
            open_, np.where(has_even_losses, intervals_down[0][1], np.inf), settled.high[indices, 0]
        )
    return observed, settled
