"""The scores on items below the runs of all groups, on items that all runs of a task have. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from esper_ab.stats.floats import Bools, Floats, Ints

Level = Literal["checkpoints", "trainings"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupItems:
    """The scores of one group in one task."""

    runs: tuple[str, ...]  # names, in order; without lost runs
    names: tuple[str, ...]  # of the items; groups that share their items have one tuple
    scores: Floats  # [runs, items]; NaN: lost
    clusters: Ints  # [items]; a number of its own for an item in no cluster
    used: Bools  # [items]; False: lost in a run of this group or, if groups share their items, of any group

    @property
    def outcomes(self) -> Floats:
        """The mean [runs] of the used items of each run; NaN if none is used."""
        if not self.used.any():
            return np.full(len(self.runs), np.nan)
        return np.asarray(self.scores[:, self.used].mean(axis=1), dtype=np.float64)

    @property
    def lost(self) -> int:
        """Number of scores that were lost."""
        return int(np.isnan(self.scores).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemsBelow:
    """The items of all groups and tasks, and the level of the answer that they are used for."""

    level: Level
    closed: bool  # the answer is about these very items, a benchmark: their choice is no source of noise
    unit: str  # the word for an item, such as "question"
    groups: Mapping[tuple[str, str], GroupItems]  # by group and task
    shared: Mapping[str, bool]  # by task: all groups have the same items; False: no two groups share an item
    repeats: tuple[int, int]  # the fewest and the most rows of an item of a run
    left_out: Mapping[str, int]  # by task: items that not all runs have

    @property
    def clustered(self) -> bool:
        """True if items share clusters."""
        return any(len(set(block.clusters.tolist())) < len(block.names) for block in self.groups.values())

    def most_runs(self, group: str) -> int:
        """Return the number of runs of `group`, in the task with the most; 0 if all were lost."""
        return max(
            (len(block.runs) for (block_group, _), block in self.groups.items() if block_group == group), default=0
        )

    def lost_of(self, group: str, tasks: Iterable[str] | None = None) -> int:
        """Return the number of scores of `group` that were lost in `tasks`; default: in all."""
        wanted_tasks = self.shared if tasks is None else tasks
        return sum(self.groups[group, task].lost for task in wanted_tasks if (group, task) in self.groups)

    def items_of(self, group: str, task: str) -> int:
        """Return the number of items of `group` in `task` that were lost in no run."""
        block = self.groups.get((group, task))
        return 0 if block is None else int(block.used.sum())


def item_name(task: str, name: str) -> str:
    """Return the name of an item among those of all tasks."""
    return f"{task}: {name}" if task else name
