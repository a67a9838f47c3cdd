"""Form the pairs of one comparison, or two samples of unpaired runs, from observations, with losses and clusters. Pure.

Pairs that share a cluster (a machine, a pretrained start, a data set), directly or through other pairs, vary together.
The mean of such pairs counts as one pair, so that the clusters are the units, which have equal weights and are
independent of one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import msgspec

from esper_ab.design.design import Contrast
from esper_ab.stats.pair import Pair, Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.observations import Cells, Observation, Observations
from esper_ab.verdict.question import HalfPair, Lost
from esper_ab.verdict.scale import MEAN, Scale


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """The data of one comparison. Replicates are numbered by their place in the given order."""

    pairs: tuple[Pair, ...] | Samples  # one per independent unit
    lost: Lost
    single: tuple[str, ...] = ()  # "3 of new": runs that are left out, because the other group has none there
    absent: tuple[str, ...] = ()  # "3 of old": runs that count as lost, because the other group has one there
    clusters: tuple[tuple[str, ...], ...] = ()  # replicates of each independent unit that has several
    existing: tuple[Pair, ...] = ()  # all pairs, including those after a gap or a decision; () if runs form no pairs
    items: ComparedItems | None = None  # the scores on items below the pairs, if they count in the test


@dataclass(frozen=True, kw_only=True)
class _Replicate:
    """The runs of both groups in one replicate, and their outcomes; None for an outcome that is lost or missing."""

    place: int
    runs_a: tuple[Observation, ...]
    runs_b: tuple[Observation, ...]
    a: float | None
    b: float | None

    @property
    def positions(self) -> tuple[int, int]:
        """The positions of both runs; (0, 1) unless both are known."""
        if not self.runs_a or not self.runs_b:
            return 0, 1
        position_a = self.runs_a[0].place
        position_b = self.runs_b[0].place
        if position_a is None or position_b is None:
            return 0, 1
        return position_a, position_b

    @property
    def pair(self) -> Pair | None:
        """The pair, if both outcomes are known."""
        if self.a is None or self.b is None:
            return None
        position_a, position_b = self.positions
        return Pair(replicate=self.place, a=self.a, b=self.b, position_a=position_a, position_b=position_b)

    @property
    def clusters(self) -> set[str]:
        """The clusters that the runs share with others."""
        return {run.cluster for run in (*self.runs_a, *self.runs_b) if run.cluster}

    def half(self, contrast: Contrast, absent: Sequence[str]) -> HalfPair:
        """Return the replicate without a pair; the runs of the groups in `absent` count as failed."""
        position_a, position_b = self.positions
        return HalfPair(
            replicate=self.place,
            a=self.a,
            b=self.b,
            failed_a=_failed(self.runs_a) or contrast.a in absent,
            failed_b=_failed(self.runs_b) or contrast.b in absent,
            position_a=position_a,
            position_b=position_b,
        )


def pair_up(
    cells: Cells,
    contrast: Contrast,
    scales: Sequence[Scale],
    order: Sequence[str],
    *,
    planned: bool = False,
    absent_lost: bool = False,
) -> Pairing:
    """Pair the runs of `contrast`, replicate by replicate in `order`.

    The runs are those of the contrast's task; for a contrast of the mean, they are the runs of all tasks in `scales`.
    If the runs were `planned`, pairs that share a cluster are reported but kept apart, and a failed run without a
    partner is not lost: the partner is not needed, or its run is still to come. `absent_lost`: a run that does not
    exist counts as lost if its partner exists, because most programs write no row for a run that crashed.
    """
    pairs: list[Pair] = []
    clusters: dict[int, set[str]] = {}  # replicate -> clusters of its pair's runs
    halves: list[HalfPair] = []
    single: list[str] = []
    absent: list[str] = []
    for place, name in enumerate(order):
        if (complete := _complete(cells, contrast, place, name)) is not None:
            pairs.append(complete)
            continue
        replicate = _replicate(cells, contrast, scales, place, name, partial=not planned)
        if (pair := replicate.pair) is not None:
            pairs.append(pair)
            clusters[place] = replicate.clusters
            continue
        lacking = _absent(cells, contrast, scales, name) if absent_lost else []
        absent += [f"{name} of {group}" for group in lacking]
        half = replicate.half(contrast, lacking)
        lost = not planned and (half.failed_a or half.failed_b)
        if lost or (replicate.runs_a and replicate.runs_b):
            halves.append(half)
        elif replicate.runs_a:
            single.append(f"{name} of {contrast.a}")
        elif replicate.runs_b:
            single.append(f"{name} of {contrast.b}")
    units = _units(pairs, clusters) if any(clusters.values()) else []  # without clusters, every pair is a unit
    pairs = [_joined(unit) for unit in units] if units and not planned else pairs
    shared = [unit for unit in units if len(unit) > 1]
    return Pairing(
        pairs=tuple(pairs),
        lost=Lost(replicates=tuple(halves)),
        single=tuple(single),
        absent=tuple(absent),
        clusters=tuple(tuple(order[pair.replicate] for pair in unit) for unit in shared),
    )


def _complete(cells: Cells, contrast: Contrast, place: int, name: str) -> Pair | None:
    """Return the pair of a replicate in the usual case: two outcomes in one task, without clusters and places."""
    run_a = cells.get((contrast.a, contrast.task, name))
    run_b = cells.get((contrast.b, contrast.task, name))
    if run_a is None or run_b is None or run_a.value is None or run_b.value is None:
        return None
    if run_a.cluster or run_b.cluster or run_a.place is not None or run_b.place is not None:
        return None
    return Pair(replicate=place, a=run_a.value, b=run_b.value, position_a=0, position_b=1)


def _replicate(
    cells: Cells, contrast: Contrast, scales: Sequence[Scale], place: int, name: str, *, partial: bool
) -> _Replicate:
    """Look up the runs of both groups in replicate `name`. `partial`: as in `runs_of`."""
    task = contrast.task
    runs_a = runs_of(cells, contrast.a, task, scales, name, partial=partial)
    runs_b = runs_of(cells, contrast.b, task, scales, name, partial=partial)
    a = _value(runs_a, task, scales)
    b = _value(runs_b, task, scales)
    return _Replicate(place=place, runs_a=runs_a, runs_b=runs_b, a=a, b=b)


def pair_explored(plan: AnalysisPlan, observations: Observations) -> dict[Contrast, Pairing]:
    """Form the pairs of exploratory observations, or two samples if the runs are unpaired."""
    cells = observations.cells
    contrasts = plan.design.comparisons
    if not plan.paired:
        return {contrast: sampled(cells, contrast, plan.scales, plan.replicates) for contrast in contrasts}
    absent_lost = not observations.partners_left_out
    pairings = {}
    for contrast in contrasts:
        pairings[contrast] = pair_up(cells, contrast, plan.scales, plan.replicates, absent_lost=absent_lost)
    return pairings


def any_outcomes_to_compare(plan: AnalysisPlan, observations: Observations) -> bool:
    """True if exploratory observations have a pair, or two samples if the runs are unpaired, in any comparison."""
    if plan.paired:
        cells = observations.cells
        for contrast in plan.design.comparisons:
            pairs = (_complete(cells, contrast, place, name) for place, name in enumerate(plan.replicates))
            if any(pair is not None for pair in pairs):
                return True
    return any(pairing.pairs for pairing in pair_explored(plan, observations).values())


def sampled(
    cells: Cells, contrast: Contrast, scales: Sequence[Scale], order: Sequence[str], *, planned: bool = False
) -> Pairing:
    """Return the runs of `contrast` as two independent samples.

    If the runs were `planned`, each keeps its replicate, because a look takes the runs of the first replicates only.
    """
    a, lost_a = _sample(cells, contrast.a, contrast.task, scales, order)
    b, lost_b = _sample(cells, contrast.b, contrast.task, scales, order)
    lost = HalfPair(replicate=0, a=None, b=None, failed_a=True, failed_b=False, position_a=0, position_b=1)
    lost_of_b = msgspec.structs.replace(lost, failed_a=False, failed_b=True)
    halves = [(place, lost) for place in lost_a] + [(place, lost_of_b) for place in lost_b]
    samples = Samples(a=tuple(a.values()), b=tuple(b.values()))
    if planned:
        samples = msgspec.structs.replace(samples, places_a=tuple(a), places_b=tuple(b))
        replicates = tuple(msgspec.structs.replace(half, replicate=place) for place, half in halves)
    else:
        replicates = tuple(half for _, half in halves)
    return Pairing(
        pairs=samples,
        lost=Lost(paired=False, replicates=replicates),
        single=(),
        absent=(),
        clusters=(),
    )


def _sample(
    cells: Cells, group: str, task: str, scales: Sequence[Scale], order: Sequence[str]
) -> tuple[dict[int, float], list[int]]:
    """Return the outcomes of a group's runs by the place of their replicate, and the places of its lost runs."""
    values = {}
    lost = []
    for place, name in enumerate(order):
        runs = runs_of(cells, group, task, scales, name, partial=True)
        value = _value(runs, task, scales)
        if value is not None:
            values[place] = value
        elif runs:
            lost.append(place)
    return values, lost


def runs_of(
    cells: Cells, group: str, task: str, scales: Sequence[Scale], replicate: str, *, partial: bool = False
) -> tuple[Observation, ...]:
    """Return the run of `group` or, for the mean over tasks, one run per task; () unless all of these runs exist.

    If `partial`, return those that exist if one of them failed: the mean is lost without the others.
    """
    tasks = _tasks(task, scales)
    keys = [(group, name, replicate) for name in tasks]
    runs = tuple(cells[key] for key in keys if key in cells)
    if len(runs) == len(tasks) or (partial and _failed(runs)):
        return runs
    return ()


def _tasks(task: str, scales: Sequence[Scale]) -> list[str]:
    """Return the tasks that a contrast in `task` covers: all of them if it is the mean."""
    if task == MEAN:
        return [scale.task for scale in scales]
    return [task]


def _absent(cells: Cells, contrast: Contrast, scales: Sequence[Scale], replicate: str) -> list[str]:
    """Return the groups that lack a run which their replicate has of the other group, in any task of the contrast.

    A task in which neither group has a run of this replicate was not meant to have one.
    """
    lacking: set[str] = set()
    for task in _tasks(contrast.task, scales):
        without = [group for group in contrast.groups if (group, task, replicate) not in cells]
        if len(without) == len(contrast.groups):
            return []
        lacking.update(without)
    return [group for group in contrast.groups if group in lacking]


def _failed(runs: Sequence[Observation]) -> bool:
    return any(run.value is None and not run.cancelled for run in runs)


def _value(runs: Sequence[Observation], task: str, scales: Sequence[Scale]) -> float | None:
    """Return the outcome; for the mean, the average over tasks in units of their margins, with higher being better."""
    values = [run.value for run in runs if run.value is not None]
    if not runs or len(values) < len(runs):
        return None
    if task != MEAN:
        return values[0]
    scaled = [scale.outcome.sign * value / scale.margin for scale, value in zip(scales, values, strict=True)]
    return fsum(scaled) / len(scaled)


def _units(pairs: Sequence[Pair], clusters: Mapping[int, set[str]]) -> list[list[Pair]]:
    """Return the pairs of each independent unit, in order; pairs form one unit if any of their runs share a cluster."""
    above: dict[str | int, str | int] = {}  # parents in a forest of clusters and replicates; each tree is a unit

    def root(node: str | int) -> str | int:
        while node in above:
            node = above[node]
        return node

    for replicate, names in clusters.items():
        for cluster in sorted(names):
            tree = root(replicate)
            joined = root(cluster)
            if tree != joined:
                above[tree] = joined
    units: dict[str | int, list[Pair]] = {}
    for pair in pairs:
        units.setdefault(root(pair.replicate), []).append(pair)
    return list(units.values())


def _joined(unit: Sequence[Pair]) -> Pair:
    """Return the mean of the pairs of an independent unit as one pair."""
    if len(unit) == 1:
        return unit[0]
    a = fsum(pair.a for pair in unit) / len(unit)
    b = fsum(pair.b for pair in unit) / len(unit)
    return Pair(replicate=unit[0].replicate, a=a, b=b, position_a=0, position_b=1)
