"""Exact tests of unpaired runs whose outcome is 0 or 1: how often they err, and how many runs they need.

    PYTHONPATH=tests python -m simulation.unpaired_counts

prints the tables of docs/evidence/rates.md (a minute on one core). Every rate is exact: a sum over all tables. A
difference is claimed if p reaches the bound and Newcombe's interval excludes 0. The package's code is not used.
"""

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


def excludes_0(n: int, m: int, bound: float) -> Bools:
    """[n + 1, m + 1] whether Newcombe's interval excludes 0."""
    a = np.arange(n + 1)[:, None]
    b = np.arange(m + 1)[None, :]
    z = z_of(np.float64(bound))
    (low_a, high_a) = wilson(a, np.float64(n), z)
    (low_b, high_b) = wilson(b, np.float64(m), z)
    differences = a / n - b / m
    low_limits = differences - np.hypot(a / n - low_a, high_b - b / m)
    high_limits = differences + np.hypot(high_a - a / n, b / m - low_b)
    return np.asarray((low_limits > 1e-12) | (high_limits < -1e-12))


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


def main() -> None:
    print(f"| runs | bound | false claims: {', '.join(TESTS)} | power at 0.9 and 0.5 | at 0.5 and 0.9 |")
    print("|---|---|---|---|---|")
    higher_chance = np.array([0.9])
    lower_chance = np.array([0.5])
    for bound in (0.05, 0.05 / 3):
        for n, m in NUMBERS:
            claim_tables = claims(n, m, bound).values()
            error_rates = " / ".join(f"{rate(claim_table, CHANCES, CHANCES).max():.1f}" for claim_table in claim_tables)
            power, reverse_power = (
                " / ".join(f"{float(rate(claim_table, *chances)[0]):.0f}" for claim_table in claim_tables)
                for chances in ((higher_chance, lower_chance), (lower_chance, higher_chance))
            )
            print(f"| {n}, {m} | {bound:.3f} | {error_rates} | {power} | {reverse_power} |", flush=True)
    print(f"\n| chances | runs per group for 80 % power: {', '.join(TESTS)} |\n|---|---|")
    for first_chance, second_chance in DIFFERENCES:
        print(
            f"| {first_chance:g}, {second_chance:g} | {' / '.join(runs_needed(first_chance, second_chance))} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
