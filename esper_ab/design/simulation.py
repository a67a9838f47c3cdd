"""The power of one scheme at any effect, exact for one look and simulated for several, and how its comparison ends."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from esper_ab.design.any_shape import ShapeBound, log_evidence_of
from esper_ab.design.pairs_needed import POWER, needs_signs
from esper_ab.design.pairs_needed import power as power_of_one_look
from esper_ab.design.scheme import Scheme
from esper_ab.design.t_process import Draws, draw, means_and_sds, t_values
from esper_ab.stats.distributions import nct_sf, t_isf
from esper_ab.stats.floats import Bools, Floats
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.signs_support import support

PATHS = 100_000  # standard error of a power of 0.8: 0.0013
FEW_PATHS = 10_000  # for whole percents: 0.004
_BISECTIONS = 16  # for five digits, because the bracket is no wider than its upper end


MARGINS = (0.0, 0.5, 1.0, 2.0)  # true differences for which a plan is described, in margins


class Endings(msgspec.Struct, frozen=True, kw_only=True):
    """How a comparison ends at one true difference, as shares of experiments; the first four have the sum 1."""

    better: float
    worse: float
    small: float  # EQUIVALENT or BELOW MARGIN
    undecided: float
    replicates: float  # mean number used


class Simulation:
    """Power of one scheme at any effect. All effects use the same draws, so that power increases with the effect."""

    def __init__(
        self, scheme: Scheme, rng: Generator, paths: int = PATHS, *, shape_bound: ShapeBound | None = None
    ) -> None:
        self.scheme = scheme
        self._shape_bound = shape_bound  # None: claims assume that the groups' distributions have the same shape
        self._draws: Draws | None = None  # None: one look or none, whose power is exact
        self._luck: dict[int, Floats] = {}  # by place of a look whose claims need the sign-flip test: luck of each path
        self._paths = paths
        self._rng_of_one_look = copy.deepcopy(rng)  # which other schemes do not share
        if len(scheme.nominal_p) > 1:
            self._draws = draw(scheme.process, paths, rng)
            self._draw_luck(rng)

    def with_shape_bound(self, shape_bound: ShapeBound | None) -> Simulation:
        """Return this simulation, with the same draws, of claims that need `shape_bound`."""
        if shape_bound is None:
            return self
        simulation = copy.copy(self)
        simulation.__dict__.pop("smallest_effect", None)
        simulation._shape_bound = shape_bound
        return simulation

    def _draw_luck(self, rng: Generator) -> None:
        for place, look in enumerate(self.scheme.process.looks):
            if needs_signs(look, self.scheme.alpha):
                self._luck[place] = rng.random(self._paths)

    def power(self, effect: float) -> float:
        """Return the probability of crossing the boundary in the right direction; 0.0 if the plan decides nothing.

        `effect` > 0 is in SDs of the differences.
        """
        if not self.scheme.nominal_p:
            return 0.0
        if self._draws is None and self._shape_bound is None:
            return self._power_of_one_look(effect)
        crossings, stop, t = self._cross(effect, self.draws)
        return float(np.mean(crossings.any(axis=0) & (take_look(stop, t) > 0.0)))

    def _power_of_one_look(self, effect: float) -> float:
        """Return the power by the noncentral t; the tail in the wrong direction does not count."""
        (df,) = self.scheme.process.df
        (information,) = self.scheme.process.information
        (p,) = self.scheme.nominal_p
        pairs = self.scheme.replicates
        if needs_signs(pairs, p):
            return power_of_one_look(1.0, effect, pairs, p, pairs - df)
        bound = float(t_isf(p / 2.0, df))
        return float(nct_sf(bound, df, effect * math.sqrt(information)))

    def expected_replicates(self, effect: float) -> float | None:
        """Return the mean number of replicates if decided comparisons stop; None if the plan decides nothing."""
        if not self.scheme.nominal_p:
            return None
        if self._draws is None:
            return float(self.scheme.replicates)
        crossings, stop, _ = self._cross(effect, self._draws)
        return float(np.mean(self._replicates_used(crossings, stop)))

    def with_stops(self, effect: float, margin: float) -> tuple[float, float]:
        """Return power and mean replicates with futility stopping; `effect` and `margin` are in SDs of differences."""
        assert self._draws is not None
        crossings, _, t = self._cross(effect, self._draws)
        ends = crossings | self._is_inside(effect, margin, self.scheme.futility_p, self._draws)
        first_ends = np.argmax(ends, axis=0)
        claims = take_look(first_ends, crossings) & (take_look(first_ends, t) > 0.0)
        return float(np.mean(claims)), float(np.mean(self._replicates_used(ends, first_ends)))

    def endings(self, effect: float, margin: float) -> Endings:
        """Return how the comparison ends at the true `effect`; both are in SDs of the differences.

        Like the verdict, only the last look may call a difference small, if it has enough pairs.
        """
        scheme = self.scheme
        if not scheme.nominal_p:
            return Endings(better=0.0, worse=0.0, small=0.0, undecided=1.0, replicates=float(scheme.replicates))
        draws = self.draws
        crossed, _, t = self._cross(effect, draws)
        ends = crossed
        if scheme.futility_p:
            ends = crossed | self._is_inside(effect, margin, scheme.futility_p, draws)
        first_ends = np.argmax(ends, axis=0)
        claimed = take_look(first_ends, crossed)
        small_mask = np.zeros(self._paths, dtype=bool)
        if scheme.replicates >= LEAST_EQUIVALENCE_PAIRS:
            equivalent = self._is_inside(effect, margin, scheme.nominal_p, draws)[-1]
            # The interval of a claim is two-sided.
            simultaneous = self._is_inside(effect, margin, [p / 2.0 for p in scheme.nominal_p], draws)[-1]
            equivalent &= self._is_inside_for_any_shape(effect, margin, 2.0)[-1]
            simultaneous &= self._is_inside_for_any_shape(effect, margin, 1.0)[-1]
            small_mask = ~ends[:-1].any(axis=0) & np.where(crossed[-1], equivalent & simultaneous, equivalent)
        positive = take_look(first_ends, t) > 0.0
        return Endings(
            better=float(np.mean(claimed & positive & ~small_mask)),
            worse=float(np.mean(claimed & ~positive & ~small_mask)),
            small=float(np.mean(small_mask)),
            undecided=float(np.mean(~claimed & ~small_mask)),
            replicates=float(np.mean(self._replicates_used(ends, first_ends))),
        )

    @property
    def draws(self) -> Draws:
        """The draws of all paths."""
        return self._draws or self._draws_of_one_look

    @cached_property
    def _draws_of_one_look(self) -> Draws:
        """Draws for a scheme with one look, whose power needs none."""
        draws = draw(self.scheme.process, self._paths, self._rng_of_one_look)
        self._draw_luck(self._rng_of_one_look)
        return draws

    def _is_inside(self, effect: float, margin: float, one_sided_p: Sequence[float], draws: Draws) -> Bools:
        """Return whether both one-sided tests at the margin reach `one_sided_p` [looks], for each look and path."""
        process = self.scheme.process
        reach = t_isf(np.asarray(one_sided_p), process.df)[:, None]
        t_below = t_values(process, draws, effect - margin)
        t_above = t_values(process, draws, effect + margin)
        return np.asarray((t_below <= -reach) & (t_above >= reach))

    def has_evidence_for_any_shape(
        self, effect: float, side: Floats | float = 1.0, *, margin: float = 0.0, errors: float = 1.0
    ) -> Bools:
        """Return whether the evidence for any shape suffices, for each look and path.

        It is evidence that a mean times `side` is above 0: that of the differences, or of these plus `margin`. `effect`
        is the true value of that mean. `errors`: the chance of an error, as a multiple of that on each side of an
        interval. Always true if claims assume the same shape.
        """
        draws = self.draws
        if self._shape_bound is None:
            return np.ones_like(draws.normal, dtype=bool)
        means, sds = means_and_sds(self.scheme.process, draws, effect)
        pairs = np.asarray(self.scheme.process.looks, dtype=np.float64)[:, None]
        size = self._shape_bound.size - margin  # no difference lies further beyond the margin
        required = math.log(self._shape_bound.evidence / errors)
        return np.asarray(log_evidence_of(side * means, sds, pairs, size) >= required)

    def _is_inside_for_any_shape(self, effect: float, margin: float, errors: float) -> Bools:
        """Return whether the evidence for any shape puts the difference inside the margin, for each look and path."""
        above = self.has_evidence_for_any_shape(effect + margin, margin=margin, errors=errors)
        below = self.has_evidence_for_any_shape(effect - margin, -1.0, margin=margin, errors=errors)
        return above & below

    def _replicates_used(self, ends: Bools, first_ends: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the replicates [paths] used if each path ends at its first look in `ends` [looks, paths], if any.

        `first_ends` [paths]: the numbers of these looks.
        """
        looks = np.asarray(self.scheme.process.looks)
        return np.where(ends.any(axis=0), looks[first_ends], self.scheme.replicates)

    @cached_property
    def smallest_effect(self) -> float | None:
        """The effect that has 80 % power, in SDs of the differences; None if no possible one has."""
        if not self.scheme.nominal_p:
            return None
        low = 0.0
        high = 1.0 / math.sqrt(self.scheme.replicates)
        while self.power(high) < POWER:
            if self._shape_bound is not None and high > self._shape_bound.size:
                return None
            low = high
            high = 2.0 * high
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if self.power(middle) >= POWER:
                high = middle
            else:
                low = middle
        if self._shape_bound is not None and high > self._shape_bound.size:
            return None
        return high

    def _cross(self, effect: float, draws: Draws) -> tuple[Bools, NDArray[np.intp], Floats]:
        """For each path, return whether it crosses the bound at each look, the look of its first crossing, and its t.

        The first and the last have the shape [looks, paths]. Where a claim also needs the sign-flip test, only paths
        that this test supports cross.
        """
        t = t_values(self.scheme.process, draws, effect)
        bounds = t_isf(np.asarray(self.scheme.nominal_p) / 2.0, self.scheme.process.df)
        beyond = np.abs(t) >= bounds[:, None]
        for place, luck in self._luck.items():
            process = self.scheme.process
            grid, shares = support(process.looks[place], process.df[place], self.scheme.alpha)
            beyond[place] &= luck < np.interp(np.abs(t[place]), grid, shares)
        if self._shape_bound is not None:
            margin = self._shape_bound.margin
            errors = 2.0 if margin else 1.0  # a claim at the margin is one-sided
            beyond &= self.has_evidence_for_any_shape(effect, np.sign(t), margin=margin, errors=errors)
        return beyond, np.argmax(beyond, axis=0), t


def take_look(look: NDArray[np.intp], values: NDArray[Any]) -> NDArray[Any]:
    """Return of `values` [looks, paths] that at the `look` of each path [paths]."""
    return np.asarray(np.take_along_axis(values, look[None], axis=0)[0])


def endings_at_margins(simulation: Simulation, margin: float) -> tuple[Endings, ...]:
    """Return how the comparison ends at each of the true differences `MARGINS`; `margin` is in SDs of differences."""
    return tuple(simulation.endings(times * margin, margin) for times in MARGINS)
