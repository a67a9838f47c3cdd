"""What each host of a family is given: a context, drawn for it, and some of the context's training samples.

A host with fewer training samples than an epoch has sees them several times in it, so that every host takes as many
steps. Tasks that are no families have one context without a name, of which every host is given everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.arrays import Ints, int_zeros
from workers.datasets.task import Task


class Shares:
    """One episode's draws: the context of each host [E], and the samples of its context in an epoch [E, N]."""

    def __init__(self, task: Task, paths: Sequence[RngPath]) -> None:
        """Draw contexts and samples, at addresses below `paths`, which has one per environment."""
        self._contexts = task.contexts
        self.context = int_zeros(len(paths))
        if self._contexts:
            drawn = [_drawn(task, path / "kind") for path in paths]
            self.context = np.array([context for context, _ in drawn], dtype=np.int64)
            self._samples = np.stack([samples for _, samples in drawn])  # [E, N]

    def among(self, envs: Ints, orders: Ints) -> Ints:
        """Turn orders [n, N] of an epoch's samples into samples of the contexts of `envs` [n]."""
        return np.take_along_axis(self._samples[envs], orders, axis=1) if self._contexts else orders


def _drawn(task: Task, path: RngPath) -> tuple[int, Ints]:
    """A context, and the samples of an epoch [N]."""
    of_context, of_number = (path / "which").generator().random(2)
    context = int(of_context * len(task.contexts))
    least, most = task.contexts[context].images
    number = least + int(of_number * (most - least + 1))
    shuffled = np.argsort((path / "images").generator().random(task.sizes[0]), kind="stable")
    return context, shuffled[np.arange(task.sizes[0]) % number]
