"""Counts to rates with their limits, and the promises that are checked. Rates are shares, 0..1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scipy import stats

from simulation import laws
from simulation.rules import KEPT
from simulation.tasks import NO_STOP, Tally

ERROR_LIMIT = 0.056  # the upper end of the 95 % interval of an error rate is at most this
COVERAGE_LIMIT = 0.945  # the lower end of the 95 % interval of a coverage is at least this

# Found at d = 1, normal law, by correlation: what the procedure was chosen for. An earlier and smaller simulation, with
# a standard error of up to 0.008; two of these are allowed.
POWER = {"10 pairs": {0.0: 0.49, 0.3: 0.64, 0.6: 0.86}, "20 pairs": {0.0: 0.84, 0.3: 0.94, 0.6: 1.00}}
POWER_ERROR = 0.016
# What a plan that need not adjust for positions has to find at d = 1, normal law, without correlation: a target
FREE_POWER_ERROR = 0.005  # two standard errors of 100,000 experiments, and a little
FREE_POWER = {
    f"{pairs} pairs, positions cannot matter": power for pairs, power in ((6, 0.29), (10, 0.50), (20, 0.835))
}


@dataclass(frozen=True)
class Row:
    """One rule under one law, correlation and truth."""

    part: str
    rule: str
    law: str
    rho: float
    truth: str
    counts: dict[str, float]

    @property
    def experiments(self) -> int:
        """Simulated."""
        return int(self.counts["experiments"])

    def rate(self, what: str) -> float:
        """Share of the experiments (of "replicates": their mean)."""
        return self.counts[what] / self.experiments

    def limits(self, what: str) -> tuple[float, float]:
        """95 % interval of the rate, Clopper & Pearson (1934)."""
        hits, n = self.counts[what], self.experiments
        low = float(stats.beta.ppf(0.025, hits, n - hits + 1)) if hits else 0.0
        high = float(stats.beta.ppf(0.975, hits + 1, n - hits)) if hits < n else 1.0
        return low, high

    @property
    def missed(self) -> str:
        """The comparison whose interval missed most often."""
        return max((name for name in self.counts if name.startswith("missed ") and name[7:].isdigit()),
                   key=lambda name: self.counts[name])  # fmt: skip

    @property
    def limited(self) -> bool:
        """Whether the promises are made for this law."""
        return laws.law_named(self.law).limited

    def as_dict(self) -> dict[str, Any]:
        """For the data file: counts as they are."""
        counts = {name: int(count) for name, count in self.counts.items()}
        return {
            "part": self.part, "rule": self.rule, "law": self.law, "rho": self.rho, "truth": self.truth, **counts,
        }  # fmt: skip


@dataclass(frozen=True)
class Limit:
    """A promise, checked: `what` is the rate of errors, at most `most`, with its 95 % interval."""

    row: Row
    what: str
    kind: str  # "error", "coverage", "equivalence", "power", "claims", "all at once"
    most: float

    @property
    def broken(self) -> bool:
        """Not shown to hold: the upper end is beyond."""
        return self.row.limits(self.what)[1] > self.most

    @property
    def surely_broken(self) -> bool:
        """Shown not to hold: the lower end is beyond."""
        return self.row.limits(self.what)[0] > self.most

    @property
    def sentence(self) -> str:
        """What, where, by how much."""
        row, (low, high) = self.row, self.row.limits(self.what)
        names = {
            "error": "false claims",
            "coverage": "intervals that miss",
            "equivalence": "equivalence claimed",
            "power": "not found",
            "claims": "any false claim",
            "all at once": "not all intervals hold at once",
            "stopped": "stopped for futility",
        }
        return (
            f"{row.rule}; {row.law}, rho {row.rho:g}; truth {row.truth}: {names[self.kind]} "
            f"{100 * row.rate(self.what):.2f} % [{100 * low:.2f}, {100 * high:.2f}], limit {100 * self.most:.1f} %"
        )


def rows(tally: Tally) -> list[Row]:
    """In the order of the work."""
    return [Row(*key, counts) for key, counts in tally.items()]


def checks(found: list[Row]) -> list[Limit]:
    """Every promise: error, coverage (no interval misses more often), equivalence claimed at the margin, power."""
    return [limit for row in found for limit in _limits(row)]


def _limits(row: Row) -> Iterator[Limit]:
    if not row.limited or row.part == "naive":
        return
    if row.part == "clusters":
        if row.rule.endswith(("means", "fresh seeds")):
            yield Limit(row, "wrong", "error", ERROR_LIMIT)
        return
    if row.part in ("stops", "families"):
        yield Limit(row, "false", "claims", ERROR_LIMIT)
    if row.part == "families":
        yield Limit(row, "missed at once", "all at once", 1.0 - COVERAGE_LIMIT)
    if row.part == "stops" and row.truth.startswith("margin") and row.rule.endswith("futility"):
        comparisons = 2 if "of 3" in row.rule else 1  # that differ by the margin, each with its own chance
        yield Limit(row, "stopped", "stopped", comparisons * (1.0 - KEPT))
    if row.part not in ("stops", "families"):
        yield from _of_pairs(row)


def _of_pairs(row: Row) -> Iterator[Limit]:
    if row.truth == NO_STOP:
        yield Limit(row, "wrong", "error", ERROR_LIMIT)
    yield Limit(row, row.missed, "coverage", 1.0 - COVERAGE_LIMIT)
    if row.truth == "margin":
        yield Limit(row, "equivalent", "equivalence", ERROR_LIMIT)
    if row.law != "normal" or row.truth != "d=1":
        return
    if row.rule in POWER:
        yield Limit(row, "silent", "power", 1.0 - POWER[row.rule][row.rho] + POWER_ERROR)
    free = FREE_POWER.get(row.rule)
    if free is not None and row.rho == 0.0:
        yield Limit(row, "silent", "power", 1.0 - free + FREE_POWER_ERROR)
