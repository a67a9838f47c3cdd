"""The order in which the arms of an evaluation run: balanced in blocks and drawn from a seed. Pure."""

from __future__ import annotations

LABELS = ("A", "B")  # of the arms, so that whoever runs the trials need not know the groups
_STARTS = ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0))


def draw_order(replicates: int, groups: tuple[str, str], seed: int) -> tuple[tuple[str, str], str]:
    """Return the groups behind the labels A and B, and the labels of all trials in order, as in "ABBA…".

    Each replicate is a block of one trial of each arm. Among four blocks in a row, two start with A and two with B.
    """
    import numpy as np  # which commands that only read a plan do not load

    rng = np.random.default_rng(seed)
    arms = groups if rng.random() < 0.5 else (groups[1], groups[0])
    labels: list[str] = []
    while len(labels) < 2 * replicates:
        for start in _STARTS[rng.integers(len(_STARTS))]:
            labels += [LABELS[start], LABELS[1 - start]]
    return arms, "".join(labels[: 2 * replicates])
