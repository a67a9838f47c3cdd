"""The scores on items of one comparison, for the data that a look uses. Pure.

Lost runs get imputed outcomes, and one more run is added to see what a claim survives. Such a run has no scores. It
gets the mean scores of its group, all shifted to its outcome, so that it adds no noise of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from esper_ab.stats.floats import Floats, Ints, distinct
from esper_ab.stats.item_scores import ItemScores, item_weights
from esper_ab.stats.pair import Data, Samples, outcomes
from esper_ab.verdict.items_below import Level


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedItems:
    """The items of both groups of a comparison; `scores` gives them for the runs, or items, that a look uses."""

    level: Level
    shared: bool
    clusters: Ints  # [items of a]
    clusters_b: Ints  # [items of b]; those of a if shared
    tasks: Ints | None  # [items of a]; None: one task
    tasks_b: Ints | None
    # For trainings only: [replicates or, unpaired, runs; items], NaN for a replicate without scores; at the level of
    # checkpoints, the data are the scores.
    a: Floats | None = None
    b: Floats | None = None

    @cached_property
    def plain(self) -> bool:
        """True for checkpoints whose items are all independent, so that tests of pairs and samples apply to items."""
        if self.level == "trainings" or self.tasks is not None:
            return False
        return all(distinct(clusters) == clusters.size for clusters in (self.clusters, self.clusters_b))

    def scores(self, data: Data) -> ItemScores | None:
        """Return the scores below `data`; None if a group has none."""
        a, b = outcomes(data)
        if not a.size or not b.size:
            return None
        if self.level == "trainings":
            return self._scores_of_runs(a, b, data)
        return self._scores_of_items(a, b, data)

    def _scores_of_runs(self, a: Floats, b: Floats, data: Data) -> ItemScores:
        assert self.a is not None
        assert self.b is not None
        paired = not isinstance(data, Samples)
        places_a: Sequence[int] = range(a.size)
        places_b: Sequence[int] = range(b.size)
        if not isinstance(data, Samples):
            places_a = places_b = data.replicate.tolist()
        return ItemScores(
            a=_shifted(self.a, places_a, a, item_weights(self.a, self.tasks)),
            b=_shifted(self.b, places_b, b, item_weights(self.b, self.tasks_b)),
            shared=self.shared,
            paired=paired,
            clusters=self.clusters,
            tasks=self.tasks,
            clusters_b=None if self.shared else self.clusters_b,
            tasks_b=None if self.shared else self.tasks_b,
        )

    def _scores_of_items(self, a: Floats, b: Floats, data: Data) -> ItemScores:
        """Return the scores of one checkpoint each; an item imputed to unpaired data is a cluster of its own."""
        if not isinstance(data, Samples):
            replicate_numbers = data.replicate
            tasks = None if self.tasks is None else self.tasks[replicate_numbers]
            return ItemScores(
                a=_unweighted(a, tasks),
                b=_unweighted(b, tasks),
                shared=True,
                paired=False,
                clusters=self.clusters[replicate_numbers],
                tasks=tasks,
            )
        first_cluster = 1 + max(int(self.clusters.max()), int(self.clusters_b.max()))
        return ItemScores(
            a=_unweighted(a, self.tasks),
            b=_unweighted(b, self.tasks_b),
            shared=False,
            paired=False,
            clusters=_continued(self.clusters, a.size, first_cluster),
            clusters_b=_continued(self.clusters_b, b.size, first_cluster + a.size),
            tasks=self.tasks,
            tasks_b=self.tasks_b,
        )


def _unweighted(values: Floats, tasks: Ints | None) -> Floats:
    """Return scores [1, items] without the weights with which the mean of all values is that of the tasks' means."""
    scores = values[None]
    return scores if tasks is None else scores / item_weights(scores, tasks)


def _continued(clusters: Ints, size: int, first_number: int) -> Ints:
    """Return `clusters` [size], with numbers from `first_number` on for those that are missing."""
    return np.concatenate([clusters, np.arange(first_number, first_number + max(0, size - clusters.size))])[:size]


def _shifted(scores: Floats, replicate_numbers: Sequence[int], values: Floats, weights: Floats) -> Floats:
    """Return the scores [values, items] at `replicate_numbers`, shifted to the outcomes `values`; see the module's
    docstring.
    """
    profile = np.nanmean(scores, axis=0)
    shares = weights / weights.sum()
    rows = []
    for place, value in zip(replicate_numbers, values, strict=True):
        row = scores[place] if place < len(scores) else profile
        if np.isnan(row).any():
            row = profile
        mean = float(row @ shares)
        if abs(mean - value) > 1e-9 * max(1.0, abs(value)):
            row = row + (value - mean)
        rows.append(row)
    return np.array(rows)
