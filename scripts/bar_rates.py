"""Simulate `assert_learns`, and write its error rates and its price into docs/evidence/bars.md.

    scripts/bar_rates    (a minute)

The rule is written anew, for arrays of experiments, from the formulas in docs/evidence/bars.md; the laws are those of
tests/simulation. Looks come after 6, 8, 10, 14, 18, … seeds, as where two runs train at the same time.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from simulation import laws  # noqa: E402
from simulation.laws import Bools, Floats  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "bars.md"
BEGIN = "<!-- bar tables -->\n"
END = "<!-- /bar tables -->"
EXPERIMENTS = 20_000
RNG_SEED = 67
ALPHA = 0.05
BUDGETS = (6, 10, 20, 50)
EFFECTS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
STAKES = ((0.95, 0.75), (1 / 2, 0.12), (1 / 4, 0.06), (1 / 8, 0.04), (1 / 16, 0.02), (1 / 32, 0.01))


def looks(seeds: int) -> list[int]:
    """Return the numbers of seeds at the looks, with two runs at a time."""
    numbers = [6]
    while numbers[-1] < seeds:
        numbers.append(min(seeds, numbers[-1] + 2 * math.ceil(numbers[-1] / 8)))
    return numbers


def side_by_t(outcomes: Floats, bar: float) -> Floats:
    """Return 1.0 where the mean of outcomes [experiments, seeds] is claimed to be above the bar, -1.0 below, else 0.0.

    The e-value of t with an N(0, 1) prior on the effect, of which each side has half, has to reach 1 / (2 alpha).
    """
    n = outcomes.shape[1]
    sd = outcomes.std(axis=1, ddof=1)
    effect = (outcomes.mean(axis=1) - bar) / np.where(sd > 0.0, sd, 1.0)
    t_square = n * effect**2
    log_ratio = np.log1p(t_square / (n - 1)) - np.log1p(t_square / (n - 1) / (n + 1))
    evidence = 0.5 * n * log_ratio - 0.5 * math.log(n + 1)
    return np.where((evidence >= -math.log(2.0 * ALPHA)) & ~lacks_spread(outcomes), np.sign(effect), 0.0)


def lacks_spread(outcomes: Floats) -> Bools:
    """Whether more than half of the outcomes of an experiment are equal and fewer than six others."""
    ordered = np.sort(outcomes, axis=1)
    n = ordered.shape[1]
    commonest = np.ones(len(ordered), dtype=int)
    for count in range(2, n + 1):
        commonest[(ordered[:, count - 1 :] == ordered[:, : n - count + 1]).any(axis=1)] = count
    return (2 * commonest > n) & (n - commonest < 6)


def side_by_range(outcomes: Floats, bar: float, low: float, high: float) -> Floats:
    """Return the same by capital of a gambler who stakes parts of it on each outcome within a range."""
    capitals = []
    for sign, size in ((1.0, bar - low), (-1.0, high - bar)):
        gains = np.maximum(sign * (outcomes - bar) / size, -1.0)
        capitals.append(sum(part * np.prod(1.0 + stake * gains, axis=1) for stake, part in STAKES))
    return np.where(capitals[0] >= 1.0 / ALPHA, 1.0, np.where(capitals[1] >= 1.0 / ALPHA, -1.0, 0.0))


def ends(outcomes: Floats, bar: float, possible: tuple[float, float] | None = None) -> tuple[Floats, Floats]:
    """Return the first claim of each experiment, 0.0 if there is none, and the seeds that it used."""
    side = np.zeros(len(outcomes))
    used = np.full(len(outcomes), float(outcomes.shape[1]))
    for look in looks(outcomes.shape[1]):
        is_open = side == 0.0
        seen = outcomes[is_open, :look]
        claimed = side_by_t(seen, bar) if possible is None else side_by_range(seen, bar, *possible)
        used[np.flatnonzero(is_open)[claimed != 0.0]] = look
        side[is_open] = claimed
    return side, used


def drawn(shape: str, seeds: int, number: int) -> Floats:
    """Return outcomes [experiments, seeds] of a law with mean 0 and SD 1."""
    rng = np.random.default_rng([RNG_SEED, number, seeds])
    return laws.runs(shape, rng.standard_normal((EXPERIMENTS, seeds)))


def failing(rng: np.random.Generator, seeds: int, rate: float) -> Floats:
    """Return outcomes of 1 of which a share is 0, less a little noise: the shape that is hardest for a claim."""
    return np.where(rng.random((EXPERIMENTS, seeds)) < rate, 0.0, 1.0 - 1e-3 * rng.random((EXPERIMENTS, seeds)))


def false_claims() -> Iterator[str]:
    """Yield the table of false claims with the mean at the bar."""
    yield from paragraph(
        "**False claims, in percent of tests, if the mean is exactly at the bar**: the test passes although the mean "
        f"is not above the bar / it says that the mean is below although it is not. {EXPERIMENTS:,} tests a cell."
    )
    yield from head(["outcomes", *(f"seeds={seeds}" for seeds in BUDGETS)])
    for number, shape in enumerate(laws.SHAPES):
        cells = []
        for seeds in BUDGETS:
            side, _ = ends(drawn(shape, seeds, number), 0.0)
            cells.append(f"{100 * (side > 0).mean():.1f} / {100 * (side < 0).mean():.1f}")
        yield row([shape, *cells])
    yield ""


def any_shape() -> Iterator[str]:
    """Yield the table of false claims of the rule for any shape."""
    yield from paragraph(
        '**The same with `shape="any", outcome_range="0..1"`**, for outcomes that fail (0) with some rate and are '
        "nearly 1 else, with the bar at their mean, and beside them the t rule."
    )
    yield from head(["failures", *(f"any, seeds={s}" for s in BUDGETS), *(f"t, seeds={s}" for s in BUDGETS)])
    for rate in (0.02, 0.05, 0.1, 0.2, 0.5):
        cells: dict[bool, list[str]] = {True: [], False: []}
        for seeds in BUDGETS:
            outcomes = failing(np.random.default_rng([RNG_SEED, 50, seeds, round(100 * rate)]), seeds, rate)
            bar = (1.0 - rate) * (1.0 - 0.5e-3)
            for any_rule in (True, False):
                side, _ = ends(outcomes, bar, (0.0, 1.0) if any_rule else None)
                cells[any_rule].append(f"{100 * (side > 0).mean():.1f} / {100 * (side < 0).mean():.1f}")
        yield row([f"{100 * rate:.0f} %", *cells[True], *cells[False]])
    yield ""


def price() -> Iterator[str]:
    """Yield the table of passes and seeds by the distance of the mean from the bar."""
    yield from paragraph(
        "**Tests that pass, in percent, and the seeds that they use on average**, by the distance of the mean above "
        "the bar, in SDs of the outcome over seeds (normal outcomes)."
    )
    yield from head(["distance", *(f"seeds={seeds}" for seeds in BUDGETS)])
    for effect in EFFECTS:
        cells = []
        for seeds in BUDGETS:
            side, used = ends(drawn("normal", seeds, 100) + effect, 0.0)
            cells.append(f"{100 * (side > 0).mean():.0f} ({used.mean():.1f})")
        yield row([f"{effect:g} SD", *cells])
    yield ""


def price_of_any_shape() -> Iterator[str]:
    """Yield the table of the seeds that the rule for any shape needs."""
    yield from paragraph(
        '**With `shape="any"`**: passes in percent and seeds on average, if all outcomes lie about a place in the '
        "range (SD 2 % of it), by that place and the bar, both as shares of the range."
    )
    yield from head(["outcomes at, bar at", *(f"seeds={seeds}" for seeds in BUDGETS)])
    for place, bar in ((0.95, 0.4), (0.95, 0.7), (0.95, 0.8), (0.95, 0.9), (0.6, 0.3), (0.6, 0.5)):
        cells = []
        for seeds in BUDGETS:
            outcomes = np.clip(place + 0.02 * drawn("normal", seeds, 101), 0.0, 1.0)
            side, used = ends(outcomes, bar, (0.0, 1.0))
            cells.append(f"{100 * (side > 0).mean():.0f} ({used.mean():.1f})")
        yield row([f"{place:g}, {bar:g}", *cells])
    yield ""


def unseen() -> Iterator[str]:
    """Yield the sentence on failures that are too rare to be seen."""
    rates = {seeds: 1.0 - 0.05 ** (1.0 / seeds) for seeds in BUDGETS}
    words = ", ".join(f"{seeds} seeds {100 * rate:.0f} %" for seeds, rate in rates.items())
    yield from paragraph(
        f"Failures that strike none of the seeds with a chance of 5 % have, at most, a rate of: {words}."
    )


def paragraph(text: str) -> Iterator[str]:
    """Yield lines of text, with an empty one after them."""
    yield from textwrap.wrap(text, 120, break_on_hyphens=False)
    yield ""


def head(names: list[str]) -> Iterator[str]:
    """Yield the first two lines of a table."""
    yield row(names)
    yield row(["---"] * len(names))


def row(cells: list[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def write() -> None:
    """Write all tables between the marks of the page."""
    tables = "\n".join([*false_claims(), *unseen(), *any_shape(), *price(), *price_of_any_shape()])
    before, _, old_tables = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = old_tables.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{tables}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
