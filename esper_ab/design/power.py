"""Compute, before any training, the power of a plan, its detectable difference, and the seeds that a margin needs.

Power is the probability that a comparison, tested at its initial share of alpha, crosses its boundary at some look in
the right direction. For one look it is exact, from the noncentral t distribution. For several looks, the paths of t are
simulated (see `boundaries.py`). At looks of 7 and 8 pairs, the exact sign-flip test must agree; the share of samples in
which it does is simulated by t. With more pairs that test costs too little power to be counted.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, UnsetType
from numpy.random import Generator

from esper_ab.design.design import default_looks
from esper_ab.design.pairs_needed import MOST_NAMED, POWER, SD_LIMITS
from esper_ab.design.scheme import PowerQuestion, scheme
from esper_ab.design.simulation import FEW_PATHS, PATHS, Simulation
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.sd_limits import sd_limits


class Stops(msgspec.Struct, frozen=True, kw_only=True):
    """How much power is lost, and how many replicates are saved, by stopping for futility."""

    power: float  # at the margin, with such stops
    expected: float  # mean replicates used if the difference is the margin
    expected_none: float  # mean replicates used if there is no difference
    expected_none_without: float  # the same, without such stops


class PowerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Power and detectable differences of a plan with `replicates`; differences are None if it decides nothing."""

    replicates: int
    looks: tuple[int, ...]
    nominal_p: tuple[float, ...]
    smallest: float | None  # difference detected with 80 % power
    smallest_low: float | None  # for the 80 % limits of the SD; None if its degrees of freedom are unknown
    smallest_high: float | None
    power: float  # at the margin
    expected: float | None  # mean replicates used if the difference is the margin
    stops: Stops | None = None  # None: no look stops for futility


class ReplicatesNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """Even numbers of replicates for 80 % power at the margin, with default looks; None means more than MOST_NAMED."""

    replicates: int | None
    low: int | None  # for the 80 % limits of the SD; equal to `replicates` if its degrees of freedom are unknown
    high: int | None


class PairSpread(msgspec.Struct, frozen=True, kw_only=True):
    """Input of a power computation: SD of paired differences with 80 % limits, SD of runs, and correlation."""

    sd_run: float
    rho: float
    sd: float
    sd_low: float | None
    sd_high: float | None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The 80 % limits of `sd`; None if its degrees of freedom are unknown."""
        if self.sd_low is None or self.sd_high is None:
            return None
        return (self.sd_low, self.sd_high)


class PowerTable(PairSpread, frozen=True, kw_only=True):
    """The answer for one run SD and one pair correlation."""

    question: PowerQuestion
    rows: tuple[PowerRow, ...]
    needed: ReplicatesNeeded
    # What would be needed if claims assumed that the groups' distributions have the same shape; unset: they do so.
    needed_if_same_shape: ReplicatesNeeded | UnsetType = UNSET


def sd_of_differences(sd_run: float, rho: float) -> float:
    """Return the SD of a paired difference, sd_run sqrt(2 (1 - rho)), where rho is the correlation within pairs."""
    return sd_run * math.sqrt(2.0 * (1.0 - rho))


def assumed(sd_run: float, rho: float, df: int | None = None) -> PairSpread:
    """Return the spread of pairs for an assumed pair correlation `rho` in [-1, 1).

    `df` is the degrees of freedom of `sd_run`; None means that `sd_run` is also an assumption. Raises ValueError if
    `rho` is outside this range or `sd_run` is not positive.
    """
    if not (sd_run > 0.0 and -1.0 <= rho < 1.0):
        raise ValueError(f"power needs sd > 0 and -1 <= rho < 1, not {sd_run} and {rho}")
    sd = sd_of_differences(sd_run, rho)
    if not df:
        return PairSpread(sd_run=sd_run, rho=rho, sd=sd, sd_low=None, sd_high=None)
    low, high = sd_limits(sd_run, df, SD_LIMITS)
    return PairSpread(
        sd_run=sd_run,
        rho=rho,
        sd=sd,
        sd_low=sd_of_differences(low, rho),
        sd_high=sd_of_differences(high, rho),
    )


def observed(sd_run: float, sd: float, df: int) -> PairSpread:
    """Return the spread of pairs from the SD of observed pairs and its degrees of freedom; both SDs are positive.

    The spread's `rho` is the value with which `assumed` would give the same SD: 1 - sd^2 / (2 sd_run^2). This `rho`
    equals Pearson's r if both groups have the same spread, and is closer to 0 otherwise.
    """
    low, high = sd_limits(sd, df, SD_LIMITS)
    return PairSpread(sd_run=sd_run, rho=1.0 - sd**2 / (2.0 * sd_run**2), sd=sd, sd_low=low, sd_high=high)


def power_tables_of(
    spreads: Sequence[PairSpread],
    replicates: Sequence[int],
    question: PowerQuestion,
    rng: Generator,
) -> tuple[PowerTable, ...]:
    """Return a power table for each spread.

    A table has one row for each number of `replicates`, and the number of replicates that the margin needs. All tables
    use the same draws. Raises ValueError if the margin is not positive.
    """
    if not question.margin > 0.0:
        raise ValueError(f"power needs margin > 0, not {question.margin}")
    simulations = []
    for count in replicates:
        if question.looks and question.looks[-1] == count:
            looks = question.looks
        else:
            looks = default_looks(count, question.claim)
        simulations.append(Simulation(scheme(count, looks, question), rng, _paths(question)))
    tables = []
    for spread in spreads:
        rows = tuple(_row(simulation, spread, question) for simulation in simulations)
        pairs_needed_of_table = replicates_needed(spread.sd, spread.limits, question, copy.deepcopy(rng))
        pairs_if_same: ReplicatesNeeded | UnsetType = UNSET
        if not isinstance(question.largest, UnsetType):
            same_shape = msgspec.structs.replace(question, largest=UNSET)
            pairs_if_same = replicates_needed(spread.sd, spread.limits, same_shape, copy.deepcopy(rng))
        tables.append(
            PowerTable(
                **msgspec.structs.asdict(spread),
                question=question,
                rows=rows,
                needed=pairs_needed_of_table,
                needed_if_same_shape=pairs_if_same,
            )
        )
    return tuple(tables)


def replicates_needed(
    sd: float,
    limits: tuple[float, float] | None,
    question: PowerQuestion,
    rng: Generator,
) -> ReplicatesNeeded:
    """Return the replicates for 80 % power at the margin with default looks; `sd` is the SD of the differences."""
    replicates = _least(sd, question, rng)
    if limits is None:
        return ReplicatesNeeded(replicates=replicates, low=replicates, high=replicates)
    low, high = limits
    return ReplicatesNeeded(
        replicates=replicates,
        low=_least(low, question, rng),
        high=_least(high, question, rng),
    )


def _row(simulation: Simulation, spread: PairSpread, question: PowerQuestion) -> PowerRow:
    scheme = simulation.scheme
    margin = question.margin
    effect = margin / spread.sd
    smallest_low = None
    smallest_high = None
    if spread.limits is not None:
        smallest_low, smallest_high = (_smallest(simulation, sd, question) for sd in spread.limits)
    smallest_difference = _smallest(simulation, spread.sd, question)
    simulation = simulation.with_shape_bound(question.shape_bound(spread.sd))
    stops = None
    if scheme.futility_p:
        stops = _stops(simulation, effect)
    return PowerRow(
        replicates=scheme.replicates,
        looks=scheme.looks,
        nominal_p=scheme.nominal_p,
        smallest=smallest_difference,
        smallest_low=smallest_low,
        smallest_high=smallest_high,
        power=simulation.power(effect),
        expected=simulation.expected_replicates(effect),
        stops=stops,
    )


def _smallest(simulation: Simulation, sd: float, question: PowerQuestion) -> float | None:
    """Return the difference that has 80 % power if differences have this SD; None if no possible one has."""
    effect = simulation.with_shape_bound(question.shape_bound(sd)).smallest_effect
    return None if effect is None else effect * sd


def _stops(simulation: Simulation, margin: float) -> Stops:
    """Return what stopping for futility costs and saves; `margin` is in SDs of the differences."""
    power, expected = simulation.with_stops(margin, margin)
    _, expected_none = simulation.with_stops(0.0, margin)
    expected_without = simulation.expected_replicates(0.0)
    assert expected_without is not None
    return Stops(power=power, expected=expected, expected_none=expected_none, expected_none_without=expected_without)


def _paths(question: PowerQuestion) -> int:
    """Return how many paths are simulated: fewer where each takes long, because claims must hold for any shape."""
    return PATHS if isinstance(question.largest, UnsetType) else FEW_PATHS


def _least(sd: float, question: PowerQuestion, rng: Generator) -> int | None:
    """Return the smallest even number of replicates with enough power at the margin; None if it exceeds MOST_NAMED."""
    effect = question.margin / sd
    bound = question.shape_bound(sd)

    def is_enough(half_pairs: int, looks: Callable[[int], tuple[int, ...]]) -> bool:
        plan = scheme(2 * half_pairs, looks(2 * half_pairs), question)
        return Simulation(plan, rng, _paths(question), shape_bound=bound).power(effect) >= POWER

    def is_enough_at_once(half_pairs: int) -> bool:
        return is_enough(half_pairs, lambda replicates: (replicates,))

    # Looks cost power, so no plan with looks needs fewer seeds than one without, whose power is exact and fast.
    least_pairs = LEAST_PAIRS if question.claim == "difference" else LEAST_EQUIVALENCE_PAIRS + 1
    start = _first(is_enough_at_once, least_pairs // 2, MOST_NAMED // 2)
    if start is None:
        return None

    def default_plan_looks(replicates: int) -> tuple[int, ...]:
        return default_looks(replicates, question.claim)

    half_pairs = _first(lambda half_pairs: is_enough(half_pairs, default_plan_looks), start, MOST_NAMED // 2)
    return None if half_pairs is None else 2 * half_pairs


def _first(is_true: Callable[[int], bool], start: int, largest_n: int) -> int | None:
    """Return the smallest n >= start with holds(n), by doubling and bisection; None if it exceeds `largest_n`."""
    low = start - 1
    high = start
    step = 1
    while not is_true(high):
        low = high
        high = high + step
        step = 2 * step
        if low >= largest_n:
            return None
        high = min(high, largest_n)
    while high - low > 1:
        middle = (low + high) // 2
        if is_true(middle):
            high = middle
        else:
            low = middle
    return high
