"""Simulate many groups, for scripts/error_rates --groups: docs/evidence/many-groups.md.

The procedures are written anew, without the package's code: multiple comparisons with the best, from Student's t of
each pair of groups (paired by seed, or Welch's), and simultaneous intervals for the means of a few runs per group.
tests/statistics/test_many_groups.py compares them with the package.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from error_rates import RNG_SEED, ROOT
from scipy import special, stats
from simulation.laws import Bools, Floats
from simulation.procedure import ALPHA

PAGE = ROOT / "docs" / "evidence" / "many-groups.md"
BEGIN = "<!-- many groups tables -->\n"
END = "<!-- /many groups tables -->"
EXPERIMENTS = 10_000
GROUPS = (4, 9, 20)
SEEDS = (6, 10, 30)
FEW = (2, 3, 5)
AHEAD = 2.0  # SDs of a run by which the best group leads where power is counted
Noise = Callable[[np.random.Generator, tuple[int, int, int]], Floats]


def normal(rng: np.random.Generator, size: tuple[int, int, int]) -> Floats:
    """Return normal outcomes [experiments, groups, seeds] with mean 0, SD 1."""
    return rng.standard_normal(size)


def skewed(rng: np.random.Generator, size: tuple[int, int, int]) -> Floats:
    """Return outcomes with mean 0, SD 1 and skewness -2: exponential, with the tail below."""
    return 1.0 - rng.exponential(size=size)


def spread(sds: Callable[[int], Sequence[float]], noise: Noise = normal) -> Noise:
    """Return a law of groups with these SDs; the last group is the best one."""
    return lambda rng, size: noise(rng, size) * np.array(sds(size[1]))[:, None]


def collapsing(share: float, depth: float, group: int) -> Noise:
    """Return normal outcomes with mean 0; in one group, a share of runs falls by `depth` SDs."""

    def draw_outcomes(rng: np.random.Generator, size: tuple[int, int, int]) -> Floats:
        outcomes = rng.standard_normal(size)
        falls = rng.random((size[0], size[2])) < share
        outcomes[:, group] += depth * (share - falls)
        return outcomes

    return draw_outcomes


LAWS: dict[str, Noise] = {
    "normal, SD 1": normal,
    "skewness -2 in all": skewed,
    "SDs from 1 to 4, the best has 4": spread(lambda k: np.geomspace(1.0, 4.0, k).tolist()),
    "SDs from 4 to 1, the best has 1": spread(lambda k: np.geomspace(4.0, 1.0, k).tolist()),
    "the best has SD 4, the others 1": spread(lambda k: [*[1.0] * (k - 1), 4.0]),
    "the best has SD 1, the others 4": spread(lambda k: [*[4.0] * (k - 1), 1.0]),
    "10 % of the best's runs fall by 10 SD": collapsing(0.1, 10.0, -1),
    "10 % of another's runs fall by 10 SD": collapsing(0.1, 10.0, 0),
}


def t_of_pairs(outcomes: Floats, *, paired: bool) -> tuple[Floats, Floats, Floats]:
    """Return differences i - j, their standard errors and degrees of freedom, each [experiments, groups, groups]."""
    n = outcomes.shape[2]
    means = outcomes.mean(2)
    centred_outcomes = outcomes - means[:, :, None]
    products = centred_outcomes @ centred_outcomes.transpose(0, 2, 1) / (n - 1)
    variances = np.einsum("eii->ei", products)
    pair_variances = variances[:, :, None] + variances[:, None, :]
    df = np.full(pair_variances.shape, n - 1.0)
    if paired:
        pair_variances = pair_variances - 2.0 * products
    else:
        squares = variances**2
        df = pair_variances**2 / (squares[:, :, None] + squares[:, None, :]) * (n - 1)
    return means[:, :, None] - means[:, None, :], np.sqrt(np.maximum(pair_variances, 0.0) / n), df


def pooled_error(outcomes: Floats, *, paired: bool) -> tuple[float, Floats]:
    """Return the degrees of freedom and the pooled standard error [experiments] of a difference."""
    _, k, n = outcomes.shape
    deviations = outcomes - outcomes.mean(2, keepdims=True)
    df = k * (n - 1)
    if paired:
        deviations = deviations - deviations.mean(1, keepdims=True)
        df = (k - 1) * (n - 1)
    variance = (deviations**2).sum((1, 2)) / df
    return df, np.sqrt(2.0 * variance / n)


def better(outcomes: Floats, *, paired: bool, pooled: bool = False) -> tuple[Bools, Floats]:
    """Return whether group i is shown to be better than j, and how much better it is at most."""
    k = outcomes.shape[1]
    level = ALPHA / (k - 1)
    difference, error, df = t_of_pairs(outcomes, paired=paired)
    if pooled:
        all_df, pooled_errors = pooled_error(outcomes, paired=paired)
        error = np.broadcast_to(pooled_errors[:, None, None], difference.shape)
        reach = np.asarray(-special.stdtrit(all_df, level))
    elif paired:
        reach = np.asarray(-special.stdtrit(outcomes.shape[2] - 1, level))
    else:
        reach = -special.stdtrit(df, level)
    half_width = reach * error
    return difference - half_width > 0.0, difference + half_width


def outcomes_of(law: Noise, k: int, n: int, number: int, *, correlation: float, lead: float = 0.0) -> Floats:
    """Draw outcomes in which the last group leads by `lead`; runs of a seed share a part, which correlates them."""
    rng = np.random.default_rng([RNG_SEED, 2, k, n, number])
    experiments = EXPERIMENTS if k < 20 else EXPERIMENTS // 2
    outcomes = law(rng, (experiments, k, n))
    if correlation:
        outcomes = outcomes + np.sqrt(correlation / (1.0 - correlation)) * rng.standard_normal((experiments, 1, n))
    outcomes[:, -1] += lead
    return outcomes


def rates(outcomes: Floats, means: Sequence[float], *, paired: bool, pooled: bool = False) -> dict[str, float]:
    """Return in percent how often the last group is missing, any group is missing, and a limit behind it is wrong."""
    wins, upper_limits = better(outcomes, paired=paired, pooled=pooled)
    best_mask = ~wins.any(1)
    diagonal = np.arange(outcomes.shape[1])
    upper_limits[:, diagonal, diagonal] = 0.0
    distances = np.where(best_mask[:, :, None], upper_limits, 0.0).max(1)
    truth = np.max(means) - np.array(means)
    return {
        "missing": 100.0 * float((~best_mask[:, -1]).mean()),
        "any": 100.0 * float((~best_mask).any(1).mean()),
        "behind": 100.0 * float((distances < truth - 1e-12).any(1).mean()),
        "size": float(best_mask.sum(1).mean()),
    }


def write() -> None:
    """Write all tables between the marks of the page."""
    head, _, old_section = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = old_section.partition(END)[2]
    tables = "\n".join([*_errors(), *_power(), *_intervals()])
    PAGE.write_text(f"{head}{BEGIN}{tables}\n{END}{tail}", encoding="utf-8")


def _errors() -> Iterable[str]:
    yield _paragraph(
        "**The best group is missing** from the set, in percent (limit 5): all means equal, which is the worst case; "
        "the best is the last group. Worst of 4, 9 and 20 groups. Pairs correlate with 0.5. Pooled: the same with one "
        "standard error of all groups. Behind: a limit of how far a group is behind fails, with means 1 SD apart in "
        "turn.",
        separator="",
    )
    designs = [(n, is_paired) for is_paired in (True, False) for n in SEEDS]
    names = [f"{n} {'pairs' if is_paired else 'runs'}" for n, is_paired in designs]
    yield from _head(["law", *names, "pooled, 10 pairs", "behind, 10 pairs"])
    for number, (name, law) in enumerate(LAWS.items()):
        cells = []
        for n, is_paired in designs:
            cells.append(max(_missing(law, k, n, number, paired=is_paired) for k in GROUPS))
        cells.append(max(_missing(law, k, 10, number, paired=True, pooled=True) for k in GROUPS))
        cells.append(max(_behind(law, k, 10, number) for k in GROUPS))
        yield _row([name, *(f"{cell:.1f}" for cell in cells)])


def _missing(law: Noise, k: int, n: int, number: int, *, paired: bool, pooled: bool = False) -> float:
    outcomes = outcomes_of(law, k, n, number, correlation=0.5 if paired else 0.0)
    return rates(outcomes, [0.0] * k, paired=paired, pooled=pooled)["missing"]


def _behind(law: Noise, k: int, n: int, number: int) -> float:
    outcomes = outcomes_of(law, k, n, number, correlation=0.5)
    means = np.arange(k) - (k - 1.0)
    return rates(outcomes + means[:, None], means.tolist(), paired=True)["behind"]


def _power() -> Iterable[str]:
    yield _paragraph(
        f"**Power**: the mean size of the set where one of k normal groups is {AHEAD:.0f} SDs better than all others "
        "(correlation 0.5), with each pair's own standard error / with a pooled one. Last column: all means equal, in "
        "percent, any group at all is missing from the set: if several groups share the best mean, each of them is in "
        "the set with 95 % confidence, all of them are not."
    )
    yield from _head(["groups", *(f"{n} pairs" for n in SEEDS), "any missing, 10 pairs"])
    for k in GROUPS:
        means = [*[0.0] * (k - 1), AHEAD]
        cells = []
        for n in SEEDS:
            outcomes = outcomes_of(normal, k, n, 0, correlation=0.5, lead=AHEAD)
            sizes = [rates(outcomes, means, paired=True, pooled=is_pooled)["size"] for is_pooled in (False, True)]
            cells.append(" / ".join(f"{size:.1f}" for size in sizes))
        equal_outcomes = outcomes_of(normal, k, 10, 0, correlation=0.5)
        cells.append(f"{rates(equal_outcomes, [0.0] * k, paired=True)['any']:.0f}")
        yield _row([str(k), *cells])


def intervals_fail(outcomes: Floats) -> dict[str, float]:
    """Return in percent how often an interval of any group's mean 0 fails, by the rule."""
    _, k, n = outcomes.shape
    means = np.abs(outcomes.mean(2))
    sds = outcomes.std(2, ddof=1)
    pooled_widths = stats.t.isf(ALPHA / 2 / k, k * (n - 1)) * np.sqrt((sds**2).mean(1, keepdims=True))
    halves = {
        "used": np.maximum(pooled_widths, stats.t.isf(ALPHA / 4, n - 1) * sds),
        "pooled": np.broadcast_to(pooled_widths, sds.shape),
        "own": stats.t.isf(ALPHA / 2 / k, n - 1) * sds,
    }
    return {name: 100.0 * float((means * np.sqrt(n) > half_width).any(1).mean()) for name, half_width in halves.items()}


INTERVAL_LAWS: dict[str, Noise] = {
    "normal, SD 1": normal,
    "skewness -2": skewed,
    "one group of SD 4": LAWS["the best has SD 4, the others 1"],
    "one group of SD 10": spread(lambda k: [*[1.0] * (k - 1), 10.0]),
    "half of the groups of SD 4": spread(lambda k: [*[1.0] * (k // 2), *[4.0] * (k - k // 2)]),
    "SDs from 1 to 4": LAWS["SDs from 1 to 4, the best has 4"],
    "one of SD 4, skewness -2": spread(lambda k: [*[1.0] * (k - 1), 4.0], skewed),
}


def _intervals() -> Iterable[str]:
    yield _paragraph(
        "**Intervals of the means of few runs**: how often, in percent (limit 5), the interval of any group fails. The "
        "worst of 4, 9 and 20 groups, by the rule used / the pooled SD alone / each group's own SD alone."
    )
    yield from _head(["law", *(f"{n} runs" for n in FEW)])
    for number, (name, law) in enumerate(INTERVAL_LAWS.items()):
        cells = []
        for n in FEW:
            by_groups = [intervals_fail(outcomes_of(law, k, n, number, correlation=0.0)) for k in GROUPS]
            cells.append(" / ".join(f"{max(row[rule] for row in by_groups):.1f}" for rule in by_groups[0]))
        yield _row([name, *cells])


def _paragraph(text: str, separator: str = "\n") -> str:
    return separator + textwrap.fill(text, 120, break_on_hyphens=False) + "\n"


def _head(names: Sequence[str]) -> list[str]:
    return [_row(names), _row(["---"] * len(names))]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
