"""All descriptive statistics of one comparison, from the catalogue esper_ab/stats/descriptive. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from numpy.typing import ArrayLike

from esper_ab.contracts import catalog
from esper_ab.stats.statistic import Statistic

_CATALOGUE = "esper_ab.stats.descriptive"


@cache
def statistics() -> Mapping[str, Statistic[Any]]:
    """Return every statistic by name, in the order in which they are shown."""
    by_name = {name: catalog.entry(_CATALOGUE, name, "STATISTIC") for name in catalog.names(_CATALOGUE)}
    return dict(sorted(by_name.items(), key=lambda item: (item[1].kind == "effect", item[1].place, item[0])))


def describe(
    a: ArrayLike,
    b: ArrayLike,
    rng_seed: int,
    *,
    lower: bool = False,
    paired: bool = True,
    binary: bool = False,
) -> dict[str, Any]:
    """Return all statistics of the outcomes a, b [pairs] by name, None where undefined. `lower`: lower is better.

    For unpaired runs and for outcomes of 0 or 1, compute only the statistics that are meaningful for them.
    """
    results = {}
    for name, statistic in statistics().items():
        applies = statistic.of_paired if paired else statistic.of_unpaired
        if binary and not statistic.of_binary:
            applies = False
        results[name] = statistic.of(a, b, rng_seed, lower=lower) if applies else None
    return results
