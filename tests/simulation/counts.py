"""Outcomes that are 0 or 1: exact tests, Newcombe's intervals, and exact rates over all possible counts."""

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from simulation.procedure import Floats

Counts = NDArray[np.int64]


def wilson(successes: Counts, n: Floats, z: float) -> tuple[Floats, Floats]:
    """Score interval of a proportion."""
    p = successes / n
    middle = p + z**2 / (2 * n)
    half_width = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return (middle - half_width) / (1 + z**2 / n), (middle + half_width) / (1 + z**2 / n)


def paired_interval(
    both_succeed: Counts, first_succeeds: Counts, second_succeeds: Counts, none_succeeds: Counts, z: float
) -> tuple[Floats, Floats]:
    """Method 10 of Newcombe 1998 (Stat Med 17:2635); `first_succeeds`: pairs in which only the first succeeded."""
    n = (both_succeed + first_succeeds + second_succeeds + none_succeeds).astype(float)
    a = both_succeed + first_succeeds
    b = both_succeed + second_succeeds
    root = np.sqrt(a * (n - a) * b * (n - b))
    cross = both_succeed * none_succeeds - first_succeeds * second_succeeds * 1.0
    corrected_cross = np.where(cross > 0, np.maximum(cross - n / 2, 0), cross)
    phi = np.divide(corrected_cross, root, out=np.zeros_like(root), where=root > 0)
    p = a / n
    q = b / n
    (p_low, p_high) = wilson(a, n, z)
    (q_low, q_high) = wilson(b, n, z)

    def reach(x: Floats, y: Floats) -> Floats:
        return np.sqrt(np.maximum(x**2 - 2 * phi * x * y + y**2, 0))

    return p - q - reach(p - p_low, q_high - q), p - q + reach(p_high - p, q - q_low)


def printed_interval(
    both_succeed: Counts, first_succeeds: Counts, second_succeeds: Counts, none_succeeds: Counts, z: float
) -> tuple[Floats, Floats]:
    """The hull of two of Newcombe's intervals: of all pairs, and of those alone that disagree."""
    low, high = paired_interval(both_succeed, first_succeeds, second_succeeds, none_succeeds, z)
    low_alone, high_alone = paired_interval(
        0 * both_succeed, first_succeeds, second_succeeds, none_succeeds + both_succeed, z
    )
    return np.minimum(low, low_alone), np.maximum(high, high_alone)


def mcnemar(first_succeeds: Counts, second_succeeds: Counts) -> Floats:
    """Exact two-sided p of as many pairs of either kind."""
    return np.asarray(
        np.minimum(
            2 * stats.binom.cdf(np.minimum(first_succeeds, second_succeeds), first_succeeds + second_succeeds, 0.5), 1.0
        )
    )


def z_of(level_missed: Floats) -> float:
    """The normal quantile of a two-sided interval."""
    return float(stats.norm.isf(level_missed / 2))


def claims(p: Floats, low: Floats, high: Floats, bound: float) -> Floats:
    """+1, -1: a difference is claimed; 0: none is."""
    return np.where((p <= bound) & (low > 0), 1.0, np.where((p <= bound) & (high < 0), -1.0, 0.0))


def joint(p: Floats, q: Floats, phi: Floats) -> Floats:
    """[..., both, first, second, neither] chances; nan where the correlation cannot be."""
    both_chance = p * q + phi * np.sqrt(p * (1 - p) * q * (1 - q))
    cells = np.stack([both_chance, p - both_chance, q - both_chance, 1 - p - q + both_chance], -1)
    return np.where((cells < -1e-12).any(-1, keepdims=True), np.nan, np.maximum(cells, 0))


def tables(n: int) -> Counts:
    """[tables, 4] all ways in which n pairs can fall."""
    i, j, k = (x.ravel() for x in np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij"))
    keep = i + j + k <= n
    return np.stack([i, j, k, n - i - j - k], 1)[keep]


def chances(table: Counts, cells: Floats) -> Floats:
    """[laws, tables] the multinomial law."""
    n = table[0].sum()
    ways = special.gammaln(n + 1) - special.gammaln(table + 1.0).sum(1)
    return np.exp(np.log(np.maximum(cells, 1e-300)) @ table.T + ways)
