"""The names under which records keep the metrics of a trainer. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from esper_ab.contracts.measures import PRINTABLE_WORDS, RESERVED, is_printable

_NAME_CHARS = 48


def measure_names(metrics: Iterable[str]) -> dict[str, str]:
    """Return a unique measure name for each metric, made of lower-case letters, digits and underscores.

    Raises ValueError for a metric whose own name cannot be a label in figures.
    """
    names: dict[str, str] = {}
    for metric in metrics:
        if not metric or not is_printable(metric):
            raise ValueError(f"the metric {metric!r} needs a name {PRINTABLE_WORDS}")
        base = re.sub(r"[^a-z0-9]+", "_", metric.lower()).strip("_")[:_NAME_CHARS]
        if not base[:1].isalpha():
            base = f"metric_{base}".rstrip("_")
        numbered = (f"{base}_{number}" for number in itertools.count(2))
        candidates = itertools.chain((base, f"metric_{base}"), numbered)
        names[metric] = next(name for name in candidates if name not in RESERVED and name not in names.values())
    return names
