"""The rule of a Design, followed for many experiments at once. Written apart from esper_ab.stats; agreement.py
compares the two.

Shapes: N experiments, m comparisons, R replicates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from esper_ab.design.design import Design
from esper_ab.stats.least_pairs import LEAST_PAIRS

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Sides = Sequence[Sequence[tuple[int, int]]]  # [m][R]: positions of a and of b


@dataclass
class Courses:
    """Where every comparison came to. [N, m]; the interval is that of its last look, unbounded as +-inf."""

    crossed: Flags
    passed_on: Flags  # the share of alpha
    small: Flags  # crossed, and shown to be smaller than the margin
    equivalent: Flags
    futile: Flags  # stopped for futility
    replicates: NDArray[np.int64]  # used until it was decided, or all
    mean: Array
    low: Array
    high: Array
    simultaneous_low: Array  # at the first share
    simultaneous_high: Array

    def covered(self, truth: float | Array) -> Flags:
        """Whether the interval holds the true difference."""
        return np.asarray((self.low <= truth) & (truth <= self.high))

    def covered_at_once(self, truth: Array) -> Flags:
        """Whether every simultaneous interval of an experiment does, [N]."""
        return np.asarray(((self.simultaneous_low <= truth) & (truth <= self.simultaneous_high)).all(axis=1))


@dataclass(frozen=True)
class Look:
    """One look: bounds by the number of comparisons open, [m]: of the test, and of the equivalence interval."""

    replicates: int
    anytime: bool
    p: tuple[float, ...]  # by open - 1; of the anytime-valid rule 1 / evidence
    least_small: int | None  # pairs from which a difference may be called small; None: it may not
    stop: float = 0.0  # one-sided p at the margin that stops for futility; 0.0: none does


def looks(design: Design, horizon: int) -> Iterator[Look]:
    """In order, up to `horizon` replicates; those with too few pairs to decide are left out."""
    counts = range(1, len(design.comparisons) + 1)
    for index, replicates in enumerate(design.looks):
        if LEAST_PAIRS <= replicates <= horizon:
            p = tuple(design.boundary(count).nominal_p[index] for count in counts)
            stop = design.futility.nominal_p[index] if design.futility is not None else 0.0
            yield Look(replicates=replicates, anytime=False, p=p, least_small=design.least_small(replicates), stop=stop)
    if design.anytime_after is not None:
        for replicates in range(max(design.anytime_after + 1, LEAST_PAIRS), horizon + 1):
            p = tuple(1.0 / (design.evidence * count) for count in counts)
            yield Look(replicates=replicates, anytime=True, p=p, least_small=design.least_small(replicates))


def follow(
    design: Design, d: Array, sides: Sides, horizon: int, *, equivalence: bool = True, lost: Collection[int] = ()
) -> Courses:
    """d [N, m, R]: differences a - b; `lost`: replicates without a pair, the same in all experiments.

    Without `equivalence` no comparison stops for being equivalent.
    """
    count, m, _ = d.shape
    courses = Courses(
        crossed=np.zeros((count, m), bool), passed_on=np.zeros((count, m), bool), small=np.zeros((count, m), bool),
        equivalent=np.zeros((count, m), bool), futile=np.zeros((count, m), bool),
        replicates=np.zeros((count, m), np.int64), mean=np.zeros((count, m)),
        low=np.full((count, m), -np.inf), high=np.full((count, m), np.inf),
        simultaneous_low=np.full((count, m), -np.inf), simultaneous_high=np.full((count, m), np.inf),
    )  # fmt: skip
    for look in looks(design, horizon):
        open_ones = ~(courses.crossed | courses.equivalent | courses.futile)
        rows = np.flatnonzero(open_ones.any(axis=1))
        if not rows.size:
            break
        there = [replicate for replicate in range(look.replicates) if replicate not in lost]
        if len(there) < LEAST_PAIRS:
            continue
        seen = d[rows][:, :, there]
        kept = [[of_one[replicate] for replicate in there] for of_one in sides]
        view = TView(seen, kept, design.positions if design.adjusted else 1, look)
        _take(courses, rows, open_ones[rows], view, design.margin, equivalence=equivalence)
    return courses


def _take(
    courses: Courses, rows: NDArray[np.int64], left: Flags, view: TView, margin: float, *, equivalence: bool
) -> None:
    """One look at the comparisons `left` of the experiments `rows`, both as before the look.

    A crossing beyond the margin leaves a larger share to those still open, which are tested again.
    """
    count, m = left.shape
    looked, first = left, np.full((count, m), m)
    crossed, passed_on, used = courses.crossed[rows], courses.passed_on[rows], courses.replicates[rows]
    mean, low, high = (values[rows] for values in (courses.mean, courses.low, courses.high))
    used[left], mean[left] = view.replicates, view.mean[left]
    while True:
        share = np.broadcast_to((m - passed_on.sum(axis=1))[:, None], (count, m)).clip(1)
        fresh = left & view.reaches(share)
        settled = fresh if fresh.any() else left
        bounds = view.interval(share)
        low[settled], high[settled] = bounds[0][settled], bounds[1][settled]
        crossed |= fresh
        passed_on |= fresh & ((bounds[0] >= margin) | (bounds[1] <= -margin))
        left = left & ~fresh
        if not fresh.any():
            break
    courses.crossed[rows], courses.passed_on[rows] = crossed, passed_on
    courses.mean[rows], courses.replicates[rows] = mean, used
    courses.low[rows], courses.high[rows] = low, high
    # What concerns the margin or all comparisons is at the first share, whatever was passed on.
    low, high = view.interval(first)
    for kept, bound in ((courses.simultaneous_low, low), (courses.simultaneous_high, high)):
        kept[rows] = np.where(looked, bound, kept[rows])
    if view.look.least_small is not None and view.replicates >= view.look.least_small:
        courses.small[rows] |= looked & ~left & (low > -margin) & (high < margin)
        if equivalence:
            inside = _inside(view.of_equivalence(first), margin)
            courses.equivalent[rows] |= left & inside & ~view.reaches(share)
    if view.look.stop:
        inside = _inside(view.of_futility(), margin)
        courses.futile[rows] |= left & inside & ~courses.equivalent[rows]


def _inside(interval: tuple[Array, Array], margin: float) -> Flags:
    """Whether the interval lies inside +-margin."""
    return np.asarray((interval[0] > -margin) & (interval[1] < margin))


class TView:
    """The t of every comparison at one look, adjusted for `positions`."""

    def __init__(self, d: Array, sides: Sides, positions: int, look: Look) -> None:
        count, m, n = d.shape
        self.look, self.replicates = look, n
        self.mean, self.se = np.empty((count, m)), np.empty((count, m))
        self.df, self.information = np.empty(m), np.empty(m)
        for index in range(m):
            x = _matrix(sides[index], positions)
            weights = np.linalg.pinv(x)[0]  # tau = weights . d
            rank = np.linalg.matrix_rank(x)  # positions may be aliased with one another, never with tau
            q = np.linalg.svd(x, full_matrices=False)[0][:, :rank]
            self.df[index], self.information[index] = n - rank, 1.0 / (weights @ weights)
            values = d[:, index]
            rest = (values**2).sum(axis=1) - ((values @ q) ** 2).sum(axis=1)
            self.mean[:, index] = values @ weights
            self.se[:, index] = np.sqrt(rest / self.df[index] / self.information[index])
        self.reach = self._half(look.p)  # [m, open]: half-width in standard errors
        self.reach_equivalence = self._half(tuple(2.0 * p for p in look.p))

    def _half(self, bounds: Sequence[float]) -> Array:
        if not self.look.anytime:
            return np.array([stats.t.isf(np.array(bounds) / 2.0, df) for df in self.df])
        return np.array(
            [
                [anytime_half(1.0 / p, float(df), float(information)) for p in bounds]
                for df, information in zip(self.df, self.information, strict=True)
            ]
        )

    def _around(self, reach: Array, share: NDArray[np.int64]) -> tuple[Array, Array]:
        half = self.se * np.take_along_axis(reach[None], share[..., None] - 1, axis=2)[..., 0]
        return self.mean - half, self.mean + half

    def reaches(self, share: NDArray[np.int64]) -> Flags:
        low, high = self._around(self.reach, share)
        return np.asarray((low >= 0.0) | (high <= 0.0))

    def interval(self, share: NDArray[np.int64]) -> tuple[Array, Array]:
        return self._around(self.reach, share)

    def of_equivalence(self, share: NDArray[np.int64]) -> tuple[Array, Array]:
        """At twice the p."""
        return self._around(self.reach_equivalence, share)

    def of_futility(self) -> tuple[Array, Array]:
        """At twice the p of a stop."""
        half = self.se * stats.t.isf(self.look.stop, self.df)
        return self.mean - half, self.mean + half


def anytime_half(evidence: float, df: float, information: float) -> float:
    """|t| at which the anytime-valid t reaches `evidence` (g = 1); inf where it never does.

    log e = log(r)/2 + (df + 1)/2 (log(1 + t^2/df) - log(1 + r t^2/df)), r = 1/(1 + information), solved by bisection.
    """
    r = 1.0 / (1.0 + information)

    def log_e(t: float) -> float:
        return 0.5 * math.log(r) + (df + 1.0) / 2.0 * (math.log1p(t * t / df) - math.log1p(r * t * t / df))

    low, high = 0.0, 1e9
    if log_e(high) < math.log(evidence):
        return math.inf
    while high - low > 1e-13 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if log_e(middle) < math.log(evidence) else (low, middle)
    return high


def _matrix(sides: Sequence[tuple[int, int]], positions: int) -> Array:
    """[n, columns]: ones, then +1 where a stands in position k and -1 where b does, k = 1, ..."""
    found = [[1.0, *(float(a == k) - float(b == k) for k in range(1, positions))] for a, b in sides]
    return np.array(found)
