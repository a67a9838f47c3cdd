"""Form the pairs of one comparison, or two samples of unpaired runs, from observations, with losses and clusters. Pure.

Pairs that share a cluster (a machine, a pretrained start, a data set), directly or through other pairs, vary together.
The mean of such pairs counts as one pair, so that the clusters are the units, which have equal weights and are
independent of one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from esper_ab.design.design import Contrast
from esper_ab.stats.pair import Pair, Samples
from esper_ab.verdict.observations import Cells, Observation
from esper_ab.verdict.question import HalfPair, Lost
from esper_ab.verdict.scale import MEAN, Scale


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """The data of one comparison. Replicates are numbered by their place in the given order."""

    pairs: tuple[Pair, ...] | Samples  # one per independent unit
    lost: Lost
    single: tuple[str, ...]  # "3 of new": runs that are left out, because the other group has none in the replicate
    absent: tuple[str, ...]  # "3 of old": runs that count as lost, because the replicate has a run of the other group
    clusters: tuple[tuple[str, ...], ...]  # replicates of each independent unit that has several
    existing: tuple[Pair, ...] = ()  # all pairs, including those after a gap or a decision; () if runs form no pairs


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
    for place, replicate in enumerate(order):
        runs_a, runs_b = (
            runs_of(cells, group, contrast.task, scales, replicate, partial=not planned) for group in contrast.groups
        )
        a = _value(runs_a, contrast.task, scales)
        b = _value(runs_b, contrast.task, scales)
        at_a, at_b = (runs[0].place if runs else None for runs in (runs_a, runs_b))
        at_a, at_b = (0, 1) if at_a is None or at_b is None else (at_a, at_b)
        if a is not None and b is not None:
            pairs.append(Pair(replicate=place, a=a, b=b, position_a=at_a, position_b=at_b))
            clusters[place] = {run.cluster for run in (*runs_a, *runs_b) if run.cluster}
            continue
        failed_a = _failed(runs_a)
        failed_b = _failed(runs_b)
        for group in _absent(cells, contrast, scales, replicate) if absent_lost else ():
            absent.append(f"{replicate} of {group}")
            failed_a = failed_a or group == contrast.a
            failed_b = failed_b or group == contrast.b
        if (runs_a and runs_b) or (not planned and (failed_a or failed_b)):
            halves.append(
                HalfPair(
                    replicate=place,
                    a=a,
                    b=b,
                    failed_a=failed_a,
                    failed_b=failed_b,
                    position_a=at_a,
                    position_b=at_b,
                )
            )
        elif runs_a or runs_b:
            single.append(f"{replicate} of {contrast.groups[0 if runs_a else 1]}")
    units = _units(pairs, clusters)
    return Pairing(
        pairs=tuple(pairs if planned else map(_joined, units)),
        lost=Lost(replicates=tuple(halves)),
        single=tuple(single),
        absent=tuple(absent),
        clusters=tuple(tuple(order[pair.replicate] for pair in unit) for unit in units if len(unit) > 1),
    )


def sampled(cells: Cells, contrast: Contrast, scales: Sequence[Scale], order: Sequence[str]) -> Pairing:
    """Return the runs of `contrast` as two independent samples."""
    a, b = (
        [
            _value(runs, contrast.task, scales)
            for name in order
            if (runs := runs_of(cells, group, contrast.task, scales, name, partial=True))
        ]
        for group in contrast.groups
    )
    lost = [(True, False)] * a.count(None) + [(False, True)] * b.count(None)
    return Pairing(
        pairs=Samples(a=tuple(x for x in a if x is not None), b=tuple(x for x in b if x is not None)),
        lost=Lost(
            paired=False,
            replicates=tuple(
                HalfPair(replicate=0, a=None, b=None, failed_a=of_a, failed_b=of_b, position_a=0, position_b=1)
                for of_a, of_b in lost
            ),
        ),
        single=(),
        absent=(),
        clusters=(),
    )


def runs_of(
    cells: Cells, group: str, task: str, scales: Sequence[Scale], replicate: str, *, partial: bool = False
) -> tuple[Observation, ...]:
    """Return the run of `group` or, for the mean over tasks, one run per task; () unless all of these runs exist.

    If `partial`, return those that exist if one of them failed: the mean is lost without the others.
    """
    names = [scale.task for scale in scales] if task == MEAN else [task]
    found = tuple(run for name in names if (run := cells.get((group, name, replicate))))
    if len(found) == len(names) or (partial and _failed(found)):
        return found
    return ()


def _absent(cells: Cells, contrast: Contrast, scales: Sequence[Scale], replicate: str) -> list[str]:
    """Return the groups that lack a run which their replicate has of the other group, in any task of the contrast.

    A task in which neither group has a run of this replicate was not meant to have one.
    """
    tasks = [scale.task for scale in scales] if contrast.task == MEAN else [contrast.task]
    has = {(group, task): (group, task, replicate) in cells for group in contrast.groups for task in tasks}
    if not all(any(has[group, task] for group in contrast.groups) for task in tasks):
        return []
    return [group for group in contrast.groups if not all(has[group, task] for task in tasks)]


def _failed(runs: Sequence[Observation]) -> bool:
    return any(run.value is None and not run.cancelled for run in runs)


def _value(runs: Sequence[Observation], task: str, scales: Sequence[Scale]) -> float | None:
    """Return the outcome; for the mean, the average over tasks in units of their margins, with higher being better."""
    values = [run.value for run in runs] or [None]
    if task != MEAN:
        return values[0]
    scaled = (
        scale.outcome.sign * value / scale.margin
        for scale, value in zip(scales, values, strict=True)
        if value is not None
    )
    return None if None in values else fsum(scaled) / len(values)


def _units(pairs: Sequence[Pair], clusters: Mapping[int, set[str]]) -> list[list[Pair]]:
    """Return the pairs of each independent unit, in order; pairs form one unit if any of their runs share a cluster."""
    above: dict[str | int, str | int] = {}  # parents in a forest of clusters and replicates; each tree is a unit

    def root(node: str | int) -> str | int:
        while node in above:
            node = above[node]
        return node

    for replicate, names in clusters.items():
        for cluster in sorted(names):
            here = root(replicate)
            there = root(cluster)
            if here != there:
                above[here] = there
    units: dict[str | int, list[Pair]] = {}
    for pair in pairs:
        units.setdefault(root(pair.replicate), []).append(pair)
    return list(units.values())


def _joined(unit: Sequence[Pair]) -> Pair:
    if len(unit) == 1:
        return unit[0]
    a, b = (fsum(values) / len(unit) for values in zip(*((pair.a, pair.b) for pair in unit), strict=True))
    return Pair(replicate=unit[0].replicate, a=a, b=b, position_a=0, position_b=1)
