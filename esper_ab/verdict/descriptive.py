"""The descriptive statistics of one comparison, whichever there are: the catalogue esper_ab/stats/descriptive. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from esper_ab.contracts import catalog
from esper_ab.stats.statistic import Statistic

_CATALOGUE = "esper_ab.stats.descriptive"


@cache
def statistics() -> Mapping[str, Statistic[Any]]:
    """Name -> statistic, in the order in which they are shown."""
    found = {name: catalog.entry(_CATALOGUE, name, "STATISTIC") for name in catalog.names(_CATALOGUE)}
    return dict(sorted(found.items(), key=lambda item: (item[1].kind == "effect", item[1].place, item[0])))


def describe(
    a: Sequence[float], b: Sequence[float], rng_seed: int, *, lower: bool = False, paired: bool = True,
    binary: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Compute every statistic of outcomes a, b [pairs] by name, None where there is none. `lower` is better or not.

    Of runs that form no pairs, and of those that came to 0 or 1, only what means something there.
    """
    return {
        name: statistic.of(a, b, rng_seed, lower=lower)
        if (paired or statistic.of_unpaired) and (statistic.of_binary or not binary) else None
        for name, statistic in statistics().items()
    }  # fmt: skip
