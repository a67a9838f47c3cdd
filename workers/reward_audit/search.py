"""A short search for a behaviour that maximises a score: what an optimiser makes of a reward, without a learner.

It keeps the best behaviours so far and tries neighbours of them, one round after the other. Every score draws the same
random numbers, so two searches differ only by what they maximise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.datasets.behaviour import Behaviour, Behaviours
from workers.facts import Floats

_PARENTS = 4
_ROUND = 8  # behaviours tried before the parents are chosen again


def search(
    behaviours: Behaviours, start: Sequence[tuple[Behaviour, float]], tries: int, path: RngPath,
    grade: Callable[[Sequence[Behaviour]], Floats],
) -> tuple[Behaviour, float]:
    """Return the best of `start` and of `tries` more behaviours, with its score by `grade`; ties: the earlier one."""
    known = list(start)
    for first in range(0, tries, _ROUND):
        best = sorted(known, key=lambda pair: -pair[1])[:_PARENTS]  # stable
        children = []
        for number in range(first, min(first + _ROUND, tries)):
            rng = (path / number).generator()
            parent = best[int(rng.integers(len(best)))][0]
            children.append(behaviours.vary(f"search {number + 1}", parent, rng))
        known += zip(children, np.asarray(grade(children)).tolist(), strict=True)
    return max(known, key=lambda pair: pair[1])
