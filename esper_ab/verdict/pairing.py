"""Form the pairs of one comparison, or two samples of unpaired runs, from observations, with losses and clusters. Pure.

Pairs that share a cluster (a machine, a pretrained start, a data set), directly or through other pairs, vary together.
The mean of such pairs counts as one pair, so that the clusters are the units, which have equal weights and are
independent of one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, isnan

import msgspec
import numpy as np

from esper_ab.design.design import Contrast
from esper_ab.stats.floats import Bools, Ints
from esper_ab.stats.pair import NO_PAIRS, Data, Pair, Pairs, Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.compared_runs import ComparedRuns, compared_runs
from esper_ab.verdict.guardrail_look import GuardedRuns
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.question import HalfPair, Lost
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import Scale


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """The data of one comparison. Replicates are numbered by their place in the given order."""

    pairs: Data  # one per independent unit
    lost: Lost
    single: tuple[str, ...] = ()  # "3 of new": runs that are left out, because the other group has none there
    absent: tuple[str, ...] = ()  # "3 of old": runs that count as lost, because the other group has one there
    clusters: tuple[tuple[str, ...], ...] = ()  # replicates of each independent unit that has several
    existing: Pairs = NO_PAIRS  # all pairs, including those after a gap or a decision; none if runs form no pairs
    items: ComparedItems | None = None  # the scores on items below the pairs, if they count in the test
    guardrails: tuple[GuardedRuns, ...] = ()  # by the order of the guardrails of the plan


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sides:
    """The runs of both groups of a contrast in each replicate; arrays are [replicates]."""

    contrast: Contrast
    a: ComparedRuns
    b: ComparedRuns

    @property
    def paired(self) -> Bools:
        """Whether both outcomes are known."""
        return ~np.isnan(self.a.value) & ~np.isnan(self.b.value)

    @cached_property
    def positions(self) -> tuple[Ints, Ints]:
        """The positions of both runs; 0 and 1 unless both are known."""
        known_mask = self.a.exist & self.b.exist & (self.a.position >= 0) & (self.b.position >= 0)
        return np.where(known_mask, self.a.position, 0), np.where(known_mask, self.b.position, 1)

    @property
    def absent(self) -> tuple[Bools, Bools]:
        """Whether a, and b, lacks a run that the other group has in this replicate, in any task of the contrast.

        A replicate with a task in which neither group has a run was not meant to have one.
        """
        no_a = self.a.rows < 0
        no_b = self.b.rows < 0
        planned_mask = ~np.any(no_a & no_b, axis=0)
        return np.asarray(np.any(no_a, axis=0) & planned_mask), np.asarray(np.any(no_b, axis=0) & planned_mask)


def _sides(runs: Runs, contrast: Contrast, scales: Sequence[Scale], order: Sequence[str], *, partial: bool) -> _Sides:
    a, b = (compared_runs(runs, group, contrast.task, scales, order, partial=partial) for group in contrast.groups)
    return _Sides(contrast=contrast, a=a, b=b)


def pair_up(
    runs: Runs,
    contrast: Contrast,
    scales: Sequence[Scale],
    order: Sequence[str],
    *,
    is_planned: bool = False,
    absent_lost: bool = False,
) -> Pairing:
    """Pair the runs of `contrast`, replicate by replicate in `order`.

    The runs are those of the contrast's task; for a contrast of the mean, they are the runs of all tasks in `scales`.
    If the runs were `is_planned`, pairs that share a cluster are reported but kept apart, and a failed run without a
    partner is not lost: the partner is not needed, or its run is still to come. `absent_lost`: a run that does not
    exist counts as lost if its partner exists, because most programs write no row for a run that crashed.
    """
    sides = _sides(runs, contrast, scales, order, partial=not is_planned)
    places = np.flatnonzero(sides.paired)
    position_a, position_b = sides.positions
    pairs = Pairs(
        replicate=places,
        a=sides.a.value[places],
        b=sides.b.value[places],
        position_a=position_a[places],
        position_b=position_b[places],
    )
    unpaired = _unpaired(sides, order, is_planned=is_planned, absent_lost=absent_lost)
    clusters = _clusters_of(runs, sides, places)
    units = _units(pairs.replicate.tolist(), clusters) if clusters else []  # without clusters, every pair is a unit
    if units and not is_planned:
        pairs = Pairs.of(_joined(pairs, unit) for unit in units)
    shared_units = [unit for unit in units if len(unit) > 1]
    return Pairing(
        pairs=pairs,
        lost=Lost(replicates=tuple(unpaired.halves)),
        single=tuple(unpaired.single),
        absent=tuple(unpaired.absent),
        clusters=tuple(tuple(order[places[number]] for number in unit) for unit in shared_units),
    )


@dataclass(frozen=True, kw_only=True)
class _Unpaired:
    """What stands for the replicates without a pair."""

    halves: list[HalfPair]
    single: list[str]
    absent: list[str]


def _unpaired(sides: _Sides, order: Sequence[str], *, is_planned: bool, absent_lost: bool) -> _Unpaired:
    """Describe the replicates that have a run of a group, but no pair; the flags are those of `pair_up`."""
    contrast = sides.contrast
    unpaired = _Unpaired(halves=[], single=[], absent=[])
    absent_a, absent_b = sides.absent
    if not absent_lost:
        absent_a = absent_b = np.zeros(len(order), dtype=np.bool_)
    unpaired_mask = ~sides.paired & (sides.a.exist | sides.b.exist | absent_a | absent_b)
    for place in np.flatnonzero(unpaired_mask).tolist():
        name = order[place]
        if absent_a[place]:
            unpaired.absent.append(f"{name} of {contrast.a}")
        if absent_b[place]:
            unpaired.absent.append(f"{name} of {contrast.b}")
        half = _half(sides, place, absent_a=bool(absent_a[place]), absent_b=bool(absent_b[place]))
        is_lost = not is_planned and (half.failed_a or half.failed_b)
        if is_lost or (sides.a.exist[place] and sides.b.exist[place]):
            unpaired.halves.append(half)
        elif sides.a.exist[place]:
            unpaired.single.append(f"{name} of {contrast.a}")
        elif sides.b.exist[place]:
            unpaired.single.append(f"{name} of {contrast.b}")
    return unpaired


def _half(sides: _Sides, place: int, *, absent_a: bool, absent_b: bool) -> HalfPair:
    """Return a replicate without a pair; the run of a group that is absent counts as failed."""
    position_a, position_b = sides.positions
    return HalfPair(
        replicate=place,
        a=_known(sides.a, place),
        b=_known(sides.b, place),
        failed_a=bool(sides.a.failed[place]) or absent_a,
        failed_b=bool(sides.b.failed[place]) or absent_b,
        position_a=int(position_a[place]),
        position_b=int(position_b[place]),
    )


def _known(runs: ComparedRuns, place: int) -> float | None:
    """Return the outcome in a replicate, or None."""
    value = float(runs.value[place])
    return None if isnan(value) else value


def pair_explored(plan: AnalysisPlan, observations: Observations) -> dict[Contrast, Pairing]:
    """Form the pairs of exploratory observations, or two samples if the runs are unpaired."""
    return {contrast: _explored(plan, observations, contrast) for contrast in plan.design.comparisons}


def _explored(plan: AnalysisPlan, observations: Observations, contrast: Contrast) -> Pairing:
    runs = observations.rows
    if not plan.paired:
        return sampled(runs, contrast, plan.scales, plan.replicates)
    absent_lost = not observations.partners_left_out
    return pair_up(runs, contrast, plan.scales, plan.replicates, absent_lost=absent_lost)


def any_outcomes_to_compare(plan: AnalysisPlan, observations: Observations) -> bool:
    """True if exploratory observations have a pair, or two samples if the runs are unpaired, in any comparison."""
    return any(_explored(plan, observations, contrast).pairs for contrast in plan.design.comparisons)


def sampled(
    runs: Runs, contrast: Contrast, scales: Sequence[Scale], order: Sequence[str], *, is_planned: bool = False
) -> Pairing:
    """Return the runs of `contrast` as two independent samples.

    If the runs were `is_planned`, each keeps its replicate, because a look takes the runs of the first replicates only.
    """
    sides = _sides(runs, contrast, scales, order, partial=True)
    known_a, lost_a = _known_and_lost(sides.a)
    known_b, lost_b = _known_and_lost(sides.b)
    lost_of_a = HalfPair(replicate=0, a=None, b=None, failed_a=True, failed_b=False, position_a=0, position_b=1)
    lost_of_b = msgspec.structs.replace(lost_of_a, failed_a=False, failed_b=True)
    halves = [(place, lost_of_a) for place in lost_a] + [(place, lost_of_b) for place in lost_b]
    samples = Samples(a=sides.a.value[known_a], b=sides.b.value[known_b])
    if is_planned:
        samples = replace(samples, places_a=known_a, places_b=known_b)
        replicates = tuple(msgspec.structs.replace(lost_pair, replicate=place) for place, lost_pair in halves)
    else:
        replicates = tuple(lost_pair for _, lost_pair in halves)
    return Pairing(
        pairs=samples,
        lost=Lost(paired=False, replicates=replicates),
        single=(),
        absent=(),
        clusters=(),
    )


def _known_and_lost(runs: ComparedRuns) -> tuple[Ints, list[int]]:
    """Return the places of the replicates whose outcome is known, and of those whose run was lost."""
    missing_mask = np.isnan(runs.value)
    return np.flatnonzero(~missing_mask), np.flatnonzero(runs.exist & missing_mask).tolist()


def leading_complete(runs: Runs, contrast: Contrast, scales: Sequence[Scale], order: Sequence[str]) -> int:
    """Count the leading replicates in which both groups have their runs, finished or lost."""
    sides = _sides(runs, contrast, scales, order, partial=False)
    missing_places = np.flatnonzero(~(sides.a.exist & sides.b.exist))
    return int(missing_places[0]) if missing_places.size else len(order)


def _clusters_of(runs: Runs, sides: _Sides, places: Ints) -> dict[int, set[str]]:
    """Return the clusters that the runs of each pair share with others, by place; without pairs that share none."""
    of_runs = runs.cluster
    if not any(of_runs.names):
        return {}
    clusters = {}
    rows = np.concatenate((sides.a.rows, sides.b.rows))[:, places]
    for place, rows_of_pair in zip(places.tolist(), rows.T.tolist(), strict=True):
        names = {of_runs[row] for row in rows_of_pair} - {""}
        if names:
            clusters[place] = names
    return clusters


def _units(replicates: Sequence[int], clusters: Mapping[int, set[str]]) -> list[list[int]]:
    """Return the pairs of each independent unit by number; pairs form one unit if any of their runs share a cluster.

    `replicates`: that of each pair.
    """
    parents: dict[str | int, str | int] = {}  # parents in a forest of clusters and replicates; each tree is a unit

    def root(node: str | int) -> str | int:
        while node in parents:
            node = parents[node]
        return node

    for replicate, names in clusters.items():
        for cluster in sorted(names):
            tree = root(replicate)
            root_of_cluster = root(cluster)
            if tree != root_of_cluster:
                parents[tree] = root_of_cluster
    units: dict[str | int, list[int]] = {}
    for number, replicate in enumerate(replicates):
        units.setdefault(root(replicate), []).append(number)
    return list(units.values())


def _joined(pairs: Pairs, unit: Sequence[int]) -> Pair:
    """Return the mean of the pairs of an independent unit as one pair."""
    first_pair = pairs[unit[0]]
    if len(unit) == 1:
        return first_pair
    a = fsum(pairs.a[unit]) / len(unit)
    b = fsum(pairs.b[unit]) / len(unit)
    return Pair(replicate=first_pair.replicate, a=a, b=b, position_a=0, position_b=1)
