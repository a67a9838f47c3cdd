"""Exact tests of unpaired runs whose outcome is 0 or 1, for scripts/unpaired_rates.

Every rate is exact: a sum over all tables. A difference is claimed if p reaches the bound and Newcombe's interval
excludes 0. The package's code is not used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats
from simulation.counts import wilson, z_of
from simulation.laws import Bools, Floats

CHANCES = np.linspace(0.0, 1.0, 401)  # that both groups share
NUMBERS = ((6, 6), (8, 8), (10, 10), (15, 15), (20, 20), (50, 50), (6, 10), (6, 20), (6, 40), (10, 100), (20, 100))
DIFFERENCES = ((0.95, 0.5), (0.9, 0.5), (0.8, 0.5), (0.9, 0.7))
TESTS = ("Fisher", "Boschloo", "Barnard")


def law(n: int, chances: Floats) -> Floats:
    """[chances, n + 1] the binomial law."""
    return np.asarray(stats.binom.pmf(np.arange(n + 1), n, chances[:, None]))


def fisher(n: int, m: int) -> Floats:
    """[n + 1, m + 1] Fisher's two-sided p of all tables."""
    p = np.ones((n + 1, m + 1))
    for total in range(n + m + 1):
        a = np.arange(max(0, total - m), min(n, total) + 1)
        likelihoods = stats.hypergeom.pmf(a, n + m, n, total)
        p[a, total - a] = [likelihoods[likelihoods <= likelihood * (1 + 1e-7)].sum() for likelihood in likelihoods]
    return p


def score(n: int, m: int) -> Floats:
    """[n + 1, m + 1] minus |z| of the difference with a pooled share, the statistic of Barnard's test."""
    x = np.arange(n + 1)[:, None]
    y = np.arange(m + 1)[None, :]
    share = (x + y) / (n + m)
    spread = np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    return -np.abs(np.divide(x / n - y / m, spread, out=np.zeros((n + 1, m + 1)), where=spread > 0))


def unconditional(statistic: Floats) -> Floats:
    """The largest chance of a statistic as small as that of each table."""
    n, m = (size - 1 for size in statistic.shape)
    order = np.argsort(statistic, axis=None)
    values = np.round(statistic.ravel()[order], 10)
    weight = (law(n, CHANCES)[:, :, None] * law(m, CHANCES)[:, None, :]).reshape(CHANCES.size, -1)[:, order]
    largest_p = np.cumsum(weight, axis=1).max(axis=0)
    p = np.empty(values.size)
    p[order] = largest_p[np.searchsorted(values, values, side="right") - 1]
    return p.reshape(statistic.shape)


def newcombe(n: int, m: int, bound: float) -> tuple[Floats, Floats]:
    """[n + 1, m + 1] Newcombe's interval of the difference of two proportions."""
    a = np.arange(n + 1)[:, None]
    b = np.arange(m + 1)[None, :]
    z = z_of(np.float64(bound))
    (low_a, high_a) = wilson(a, np.float64(n), z)
    (low_b, high_b) = wilson(b, np.float64(m), z)
    difference = a / n - b / m
    low = difference - np.hypot(a / n - low_a, high_b - b / m)
    return np.asarray(low), np.asarray(difference + np.hypot(high_a - a / n, b / m - low_b))


def excludes_0(n: int, m: int, bound: float) -> Bools:
    """[n + 1, m + 1] whether Newcombe's interval excludes 0."""
    low, high = newcombe(n, m, bound)
    return np.asarray((low > 1e-12) | (high < -1e-12))


def claims(n: int, m: int, bound: float) -> dict[str, Bools]:
    """By test, which tables show a difference."""
    fisher_p = fisher(n, m)
    ps = dict(zip(TESTS, (fisher_p, unconditional(fisher_p), unconditional(score(n, m))), strict=True))
    return {name: (p <= bound) & excludes_0(n, m, bound) for name, p in ps.items()}


def rate(claim_table: Bools, first_chance: Floats, second_chance: Floats) -> Floats:
    """The share (%) of experiments with a claim at these chances of the groups."""
    n, m = (size - 1 for size in claim_table.shape)
    return 100 * ((law(n, first_chance) @ claim_table) * law(m, second_chance)).sum(axis=1)


def runs_needed(first_chance: float, second_chance: float) -> list[str]:
    """By test, the least number per group from which on power is 80 %."""
    numbers = range(6, 80)
    chance = np.array([first_chance]), np.array([second_chance])
    power = [
        {name: float(rate(claim_table, *chance)[0]) for name, claim_table in claims(n, n, 0.05).items()}
        for n in numbers
    ]
    return [
        str(1 + max(n for n, power_by_test in zip(numbers, power, strict=True) if power_by_test[name] < 80))
        for name in TESTS
    ]


def needed() -> Iterator[list[str]]:
    """Yield the runs per group for 80 % power."""
    yield ["chances", f"runs per group: {' / '.join(TESTS)}"]
    for first_chance, second_chance in DIFFERENCES:
        yield [f"{first_chance:g}, {second_chance:g}", " / ".join(runs_needed(first_chance, second_chance))]


def errors_and_power() -> Iterator[list[str]]:
    """Yield false claims at the worst chance that both groups share, and power."""
    yield ["runs", "bound", "false claims", "power, 0.9 and 0.5", "power, 0.5 and 0.9"]
    high = np.array([0.9])
    low = np.array([0.5])
    for bound in (0.05, 0.05 / 3):
        for n, m in NUMBERS:
            tables = claims(n, m, bound).values()
            error_rates = " / ".join(f"{rate(table, CHANCES, CHANCES).max():.1f}" for table in tables)
            powers = (
                " / ".join(f"{float(rate(table, *chances)[0]):.0f}" for table in tables)
                for chances in ((high, low), (low, high))
            )
            yield [f"{n}, {m}", f"{bound:.3f}", error_rates, *powers]


def called_small() -> Iterator[list[str]]:
    """Yield how often Newcombe's interval lies inside the margin at a true difference of the margin."""
    margins = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    yield ["runs of each group", *(f"margin {margin:g}" for margin in margins)]
    worst = {n: [_largest_inside(n, margin) for margin in margins] for n in range(15, 51)}
    yield ["15", *(f"{rate:.1f}" for rate in worst[15])]
    yield ["15 to 50, the worst", *(f"{max(rates):.1f}" for rates in zip(*worst.values(), strict=True))]


def _largest_inside(n: int, margin: float) -> float:
    low, high = newcombe(n, n, 0.05)
    is_inside = (low > -margin) & (high < margin)
    chances = np.linspace(0.0, 1.0 - margin, 101)
    return float(rate(is_inside, chances + margin, chances).max())
