"""Outcomes of four groups, whose runs share a part by seed."""

from collections.abc import Mapping

import numpy as np

MEANS = {"a": 3.0, "b": 2.9, "c": 0.0, "d": -2.0}


def table(
    means: Mapping[str, float] = MEANS, seeds: int = 10, *, task: str | None = None, sign: float = 1.0
) -> list[dict[str, object]]:
    """Return one row for each run of the four groups."""
    rng = np.random.default_rng(5)
    seed_effects = rng.normal(size=seeds)
    rows: list[dict[str, object]] = []
    for group, mean in means.items():
        for seed in range(seeds):
            outcome = sign * (50.0 + mean + seed_effects[seed] + rng.normal() / 2)
            row: dict[str, object] = {"group": group, "seed": seed, "outcome": outcome}
            rows.append(row if task is None else {**row, "task": task})
    return rows
