"""CSV tables of outcomes, as external programs write them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from esper_ab.readers.external_table import observations_of
from esper_ab.readers.scales import scales_of
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.scale import Scale

HEADER = ("group", "seed", "run", "outcome", "task", "cluster")


def rows(a: Sequence[object], b: Sequence[object], *, task: str = "", first_seed: int = 0) -> list[dict[str, object]]:
    """Return one row for each run of the groups new and old, ordered by seed."""
    return [
        {"group": group, "seed": first_seed + place, "outcome": value} | ({"task": task} if task else {})
        for place, values in enumerate(zip(a, b, strict=True))
        for group, value in zip(("new", "old"), values, strict=True)
    ]


def outcomes(table: Sequence[Mapping[str, object]]) -> Observations:
    columns = {name: [row[name] for row in table] for name in HEADER if name in table[0]}
    return observations_of("results.csv", columns, range(2, 2 + len(table)))


def csv_text(table: Iterable[Mapping[str, object]], *, header: str = "group,seed,outcome") -> str:
    lines = (",".join(str(row[name]) for name in header.split(",")) for row in table)
    return "\n".join((header, *lines, ""))


def scales(margin: float = 2.0, tasks: Sequence[str] = ("",), better_direction: str = "higher") -> tuple[Scale, ...]:
    return scales_of(tasks, margin, better=better_direction)


def drawn(pairs: int, effect: float, *, sd: float = 2.0, rng_seed: int = 1) -> tuple[list[float], list[float]]:
    """Return random outcomes of new and old, whose pairs have a correlation of about a half."""
    rng = np.random.default_rng(rng_seed)
    shared_part = 70.0 + sd * rng.standard_normal(pairs)
    a, b = (shared_part + sd * rng.standard_normal(pairs) for _ in range(2))
    return [round(float(x) + effect, 3) for x in a], [round(float(x), 3) for x in b]
