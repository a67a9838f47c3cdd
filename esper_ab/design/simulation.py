"""The power of one scheme at any effect: exact for one look, simulated for several."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from esper_ab.design.pairs_needed import POWER, needs_signs
from esper_ab.design.pairs_needed import power as power_of_one_look
from esper_ab.design.scheme import Scheme
from esper_ab.design.t_process import Draws, draw, t_values
from esper_ab.stats.distributions import nct_sf, t_isf
from esper_ab.stats.floats import Bools, Floats
from esper_ab.stats.signs_support import support

_PATHS = 100_000  # standard error of a power of 0.8: 0.0013
_BISECTIONS = 16  # for five digits, because the bracket is no wider than its upper end


class Simulation:
    """Power of one scheme at any effect. All effects use the same draws, so that power increases with the effect."""

    def __init__(self, scheme: Scheme, rng: Generator, paths: int = _PATHS) -> None:
        self.scheme = scheme
        self._draws: Draws | None = None  # None: one look or none, whose power is exact
        self._luck: dict[int, Floats] = {}  # by place of a look whose claims need the sign-flip test: luck of each path
        if len(scheme.nominal_p) > 1:
            self._draws = draw(scheme.process, paths, rng)
            for place, look in enumerate(scheme.process.looks):
                if needs_signs(look, scheme.alpha):
                    self._luck[place] = rng.random(paths)

    def power(self, effect: float) -> float:
        """Return the probability of crossing the boundary in the right direction; 0.0 if the plan decides nothing.

        `effect` > 0 is in SDs of the differences.
        """
        if not self.scheme.nominal_p:
            return 0.0
        if self._draws is None:
            return self._power_of_one_look(effect)
        crossed, stop, t = self._cross(effect, self._draws)
        return float(np.mean(crossed.any(axis=0) & (_take_look(stop, t) > 0.0)))

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
        crossed, stop, _ = self._cross(effect, self._draws)
        return float(np.mean(self._replicates_used(crossed, stop)))

    def with_stops(self, effect: float, margin: float) -> tuple[float, float]:
        """Return power and mean replicates with futility stopping; `effect` and `margin` are in SDs of differences."""
        assert self._draws is not None
        process = self.scheme.process
        crossed, _, t = self._cross(effect, self._draws)
        reach = t_isf(np.asarray(self.scheme.futility_p), process.df)[:, None]
        below = t_values(process, self._draws, effect - margin)
        above = t_values(process, self._draws, effect + margin)
        futile = (below <= -reach) & (above >= reach)
        ends = crossed | futile
        first = np.argmax(ends, axis=0)
        claims = _take_look(first, crossed) & (_take_look(first, t) > 0.0)
        return float(np.mean(claims)), float(np.mean(self._replicates_used(ends, first)))

    def _replicates_used(self, ends: Bools, first: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the replicates [paths] used if each path ends at its `first` look of `ends` [looks, paths], if any."""
        looks = np.asarray(self.scheme.process.looks)
        return np.where(ends.any(axis=0), looks[first], self.scheme.replicates)

    @cached_property
    def smallest_effect(self) -> float | None:
        """The effect that has 80 % power, in SDs of the differences; None if the plan decides nothing."""
        if not self.scheme.nominal_p:
            return None
        low = 0.0
        high = 1.0 / math.sqrt(self.scheme.replicates)
        while self.power(high) < POWER:
            low = high
            high = 2.0 * high
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            if self.power(middle) >= POWER:
                high = middle
            else:
                low = middle
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
        return beyond, np.argmax(beyond, axis=0), t


def _take_look(look: NDArray[np.intp], values: NDArray[Any]) -> NDArray[Any]:
    """Return of `values` [looks, paths] that at the `look` of each path [paths]."""
    return np.asarray(np.take_along_axis(values, look[None], axis=0)[0])
