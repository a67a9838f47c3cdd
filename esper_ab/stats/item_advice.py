"""How many runs or items make the interval of a difference narrower: a forecast from its variance components.

With r times as many runs and m times as many items, the variance is Q / r + B / m + H / (r m), where Q, B and H are the
shares of runs, of items and of single scores. The degrees of freedom grow accordingly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from esper_ab.stats.distributions import t_isf
from esper_ab.stats.floats import Floats
from esper_ab.stats.item_difference import ItemDifference, ItemLevel
from esper_ab.stats.least_pairs import LEAST_PAIRS

_MOST_RUNS = 10_000  # of a group
_MOST_ITEMS = 10_000_000
_MOST_CHOICES = 1_000  # numbers of runs among which the cheapest is chosen

Counts = NDArray[np.int64]


class Cheapest(msgspec.Struct, frozen=True, kw_only=True):
    """The runs per group and the items that reach the goal at the least cost."""

    runs: int
    items: int
    cost: float  # of both groups, in evaluations of one item


class ItemAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """What would make half the width of the interval `goal`; None for a number that no plan reaches."""

    level: ItemLevel
    half_width: float  # today
    goal: float
    runs: float  # of each group today; the harmonic mean if the numbers differ
    items: int  # today
    runs_needed: int | None  # per group, on these items; None for checkpoints, too
    items_needed: int | None  # with these runs
    cheapest: Cheapest | None  # None for checkpoints, and if the cost of a run is not known


@dataclass(frozen=True, kw_only=True)
class _Forecast:
    """The components of today's variance."""

    level: ItemLevel
    p: float
    runs: float
    items: int
    of_runs: float
    of_items: float
    of_scores: float
    df_runs: float
    df_items: float

    def half_width(self, runs: Counts | float, items: Counts | int) -> Floats:
        """Return half the expected width [plans] of the interval with so many runs per group, and so many items."""
        more_runs = runs / self.runs
        more_items = items / self.items
        score_variance = self.of_scores / (more_runs * more_items)
        v_runs = self.of_runs / more_runs + score_variance
        v_items = self.of_items / more_items + score_variance
        df_items = (self.df_items + 1.0) * more_items - 1.0
        if self.level == "checkpoints":
            return np.asarray(t_isf(self.p / 2.0, df_items) * np.sqrt(v_items))
        variance = v_runs + v_items - score_variance
        df_runs = self.df_runs * (runs - 1.0) / (self.runs - 1.0)
        power = np.where(np.less(runs, LEAST_PAIRS), 1.0, 2.0)  # as in item_difference
        inverse_df = (v_runs / variance) ** power / df_runs + (v_items / variance) ** power / df_items
        return np.asarray(t_isf(self.p / 2.0, 1.0 / inverse_df) * np.sqrt(variance))


def item_advice(
    difference: ItemDifference, p: float, *, factor: float = 0.5, run_cost: float | None = None
) -> ItemAdvice | None:
    """Return what makes the interval at level 1 - `p` `factor` times as wide; None without a test.

    `run_cost` is the cost of training one run, in evaluations of one item.
    """
    interval = difference.interval(p)
    if interval is None or not difference.v_items:
        return None
    half_width = (interval[1] - interval[0]) / 2.0
    forecast = _forecast(difference, p)
    goal = factor * half_width
    fewest_runs = math.ceil(forecast.runs)
    runs_needed = None
    cheapest_plan = None
    if difference.level == "trainings":
        (least_runs,) = _least(
            lambda runs: forecast.half_width(runs, difference.items), goal, np.array([fewest_runs]), _MOST_RUNS
        )
        runs_needed = _reached(least_runs, _MOST_RUNS)
        if run_cost is not None:
            choices = np.arange(fewest_runs, min(int(least_runs), _MOST_RUNS, fewest_runs + _MOST_CHOICES) + 1)
            cheapest_plan = _cheapest(forecast, goal, choices, run_cost)
    (least_items,) = _least(
        lambda items: forecast.half_width(forecast.runs, items), goal, np.array([difference.items]), _MOST_ITEMS
    )
    return ItemAdvice(
        level=difference.level,
        half_width=half_width,
        goal=goal,
        runs=forecast.runs,
        items=difference.items,
        runs_needed=runs_needed,
        items_needed=_reached(least_items, _MOST_ITEMS),
        cheapest=cheapest_plan,
    )


def _forecast(difference: ItemDifference, p: float) -> _Forecast:
    """Split the variance of `difference` into its components; none is negative, and their sum is that variance."""
    v_items = difference.v_items or 0.0
    if difference.level == "checkpoints":
        run_variance, item_variance, score_variance = 0.0, v_items, 0.0
    else:
        v_runs = difference.v_runs or 0.0
        score_variance = min(difference.v_residual or 0.0, max(v_runs, v_items))
        run_variance = max(v_runs - score_variance, 0.0)
        item_variance = max(v_items - score_variance, 0.0)
    return _Forecast(
        level=difference.level,
        p=p,
        runs=2.0 / (1.0 / difference.runs_a + 1.0 / difference.runs_b),
        items=difference.items,
        of_runs=run_variance,
        of_items=item_variance,
        of_scores=score_variance,
        df_runs=difference.df_runs,
        df_items=difference.df_items,
    )


def _least(width: Callable[[Counts], Floats], goal: float, low: Counts, most_number: int) -> Counts:
    """Return the least numbers from `low` to `most_number` whose `width`, which falls, is at most `goal`; most + 1:
    none.
    """
    too_few = low - 1
    enough_numbers = np.full_like(low, most_number + 1)
    while np.any(enough_numbers - too_few > 1):
        middle = (too_few + enough_numbers) // 2
        narrow = (width(np.maximum(middle, low)) <= goal) & (middle > too_few)
        enough_numbers = np.where(narrow, middle, enough_numbers)
        too_few = np.where(narrow, too_few, middle)
    return enough_numbers


def _reached(number: np.int64, most_number: int) -> int | None:
    return int(number) if number <= most_number else None


def _cheapest(forecast: _Forecast, goal: float, runs: Counts, run_cost: float) -> Cheapest | None:
    """Return the cheapest of the plans with these numbers of `runs` [plans] and the items that each needs."""
    start = np.full_like(runs, forecast.items)
    items = _least(lambda number: forecast.half_width(runs, number), goal, start, _MOST_ITEMS)
    costs = np.where(items <= _MOST_ITEMS, 2.0 * runs * (run_cost + items), np.inf)
    best_index = int(np.argmin(costs))
    if np.isinf(costs[best_index]):
        return None
    return Cheapest(runs=int(runs[best_index]), items=int(items[best_index]), cost=float(costs[best_index]))
