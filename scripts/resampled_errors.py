"""False claims on outcomes of real training, resampled from stored runs, for scripts/resample_windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from benchmarks.markdown import table
from resampled_plans import directions, drawn_places, rule_of

from esper_ab.stats.floats import Floats

PLANS = (6, 10, 20)  # pairs


def errors_table(runs: Mapping[str, Sequence[Floats]], differences: Mapping[str, Sequence[Floats]]) -> Iterator[str]:
    """Yield how often plans claim a difference, by task.

    `runs`: the outcomes of each group, of which both members of every pair are drawn. `differences`: those of each
    couple of groups, centred on their mean.
    """
    columns = " | ".join(f"{pairs} pairs" for pairs in PLANS)
    rows = []
    for task in (*runs, "all"):
        groups = [x for name, of_task in runs.items() if task in (name, "all") for x in of_task]
        couples = [d for name, of_task in differences.items() if task in (name, "all") for d in of_task]
        one_group, centred = _rates(map(all_pairs, groups)), _rates(d - d.mean() for d in couples)
        rows.append((task, len(groups), *one_group, len(couples), *centred))
    yield from table(f"task | groups | one group: {columns} | couples | centred: {columns}", rows)


def all_pairs(outcomes: Floats) -> Floats:
    """Return the differences of every run of a group to every run of it."""
    return np.asarray(np.subtract.outer(outcomes, outcomes).ravel())


def _rates(samples: Iterable[Floats]) -> list[str]:
    """Return by plan the mean percentage of claims, and in brackets the largest."""
    rates = np.array([[false_claims(sample, pairs) for pairs in PLANS] for sample in samples])
    return [f"{mean:.1f} ({largest:.0f})" for mean, largest in zip(rates.mean(0), rates.max(0), strict=True)]


def false_claims(differences: Floats, pairs: int) -> float:
    """Return the percentage of resampled plans that claim a difference, where the mean of `differences` is 0."""
    claims = directions(differences, drawn_places(differences.size, pairs), rule_of(pairs))
    return 100.0 * float(np.mean(claims != 0))
