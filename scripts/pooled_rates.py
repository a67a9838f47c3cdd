"""Simulate how often pooled experiments err, and write the tables of docs/evidence/pooled.md.

    scripts/pooled_rates

Experiments are simulated as their pairs' differences, with their own looks and early stops; bounds are those of the
package (`design/bounds.py`, `stats/pooled_bound.py`, `stats/random_effects.py`). The sign-flip test, which claims of 7,
8 and 11 to 20 pairs also need, is left out, so rates of the package are at most these. All rules of launching are
applied to the same simulated experiments.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from page_tables import replace_tables  # noqa: E402
from pooled_task_rates import tasks_table  # noqa: E402

from esper_ab.design.bounds import find_bounds  # noqa: E402
from esper_ab.design.design import default_looks  # noqa: E402
from esper_ab.stats.distributions import norm_isf, t_isf, t_sf  # noqa: E402
from esper_ab.stats.pooled_bound import alpha_of_pooling, bound_after_early_stops  # noqa: E402
from esper_ab.stats.random_effects import random_effects  # noqa: E402

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Law = Callable[[np.random.Generator, tuple[int, ...]], Floats]

PAGE = ROOT / "docs" / "evidence" / "pooled.md"
ALPHA = 0.05
MOST = 5  # experiments of one question
EXPERIMENTS = 40_000
MEANS = 2_000  # simulated means over experiments
RNG_SEED = 66


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_normal(shape)


def t3(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_t(3, shape)


def lognormal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.asarray(np.exp(rng.standard_normal(shape)) - np.exp(rng.standard_normal(shape)))


def collapsing(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """15 % of the runs of both groups fall by 20 SDs."""
    sides = [rng.standard_normal(shape) - 20.0 * (rng.random(shape) < 0.15) for _ in range(2)]
    return np.asarray(sides[0] - sides[1])


def learning_or_not(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Half of the runs of both groups learn; little else varies."""
    sides = [(rng.random(shape) < 0.5) + 0.05 * rng.standard_normal(shape) for _ in range(2)]
    return np.asarray(sides[0] - sides[1])


LAWS: dict[str, Law] = {
    "normal": normal,
    "t with 3 degrees of freedom": t3,
    "lognormal": lognormal,
    "15 % of runs collapse": collapsing,
    "learns or not": learning_or_not,
}


@dataclass(frozen=True)
class Plan:
    """Seeds and looks of one experiment."""

    seeds: int
    looks: tuple[int, ...]

    @property
    def words(self) -> str:
        return f"{self.seeds} seeds, looks after {', '.join(map(str, self.looks))}"


def planned(seeds: int) -> Plan:
    return Plan(seeds, default_looks(seeds))


@dataclass(frozen=True)
class Simulated:
    """Simulated experiments [repetitions, MOST]: what each claims alone, and the sums of its pairs."""

    plan: Plan
    own: Floats  # sign of the claim; 0: open
    pairs: Ints
    total: Floats
    squares: Floats


def simulate(plan: Plan, law: Law, difference: float, repetitions: int, shares: int = 1) -> Simulated:
    """Simulate experiments that stop at the first look that crosses its bound, at alpha / shares."""
    rng = np.random.default_rng([RNG_SEED, plan.seeds, len(plan.looks), round(1000 * difference)])
    (bounds,) = find_bounds(((0, 1),) * plan.seeds, 1, plan.looks, (ALPHA / shares,))
    d = law(rng, (repetitions, MOST, plan.seeds)) + difference
    total = np.cumsum(d, axis=2)
    squares = np.cumsum(d**2, axis=2)
    claims = np.zeros((repetitions, MOST))
    pairs = np.full((repetitions, MOST), plan.seeds)
    stopped_mask = np.zeros((repetitions, MOST), dtype=bool)
    for look, bound in zip(plan.looks, bounds, strict=True):
        t = t_of(np.full_like(pairs, look), total[:, :, look - 1], squares[:, :, look - 1])
        crosses = (2.0 * t_sf(np.abs(t), look - 1) <= bound) & ~stopped_mask
        claims[crosses] = np.sign(t[crosses])
        pairs[crosses] = look
        stopped_mask |= crosses
    place = pairs[:, :, None] - 1
    return Simulated(
        plan,
        claims,
        pairs,
        np.take_along_axis(total, place, 2)[:, :, 0],
        np.take_along_axis(squares, place, 2)[:, :, 0],
    )


def t_of(n: Ints, total: Floats, squares: Floats) -> Floats:
    variance = np.maximum(squares - total**2 / n, 1e-300) / (n - 1)
    return np.asarray(total / np.sqrt(variance * n))


def pooled_rule(simulated: Simulated, shares: int = 1) -> Floats:
    """Return the claims [repetitions, MOST] of the package after the first 1, 2, … experiments (1: always open)."""
    claims = np.zeros_like(simulated.own)
    for count in range(2, MOST + 1):
        n, t = _pooled_t(simulated, count)
        alpha = alpha_of_pooling(ALPHA, count) / shares
        bounds = {
            size: bound_after_early_stops(alpha, size - 1, size, simulated.plan.seeds * count)
            for size in np.unique(n).tolist()
        }
        bound = np.vectorize(bounds.get)(n)
        claims[:, count - 1] = np.sign(t) * (2.0 * t_sf(np.abs(t), n - 1) <= bound)
    return claims


def _pooled_t(simulated: Simulated, count: int) -> tuple[Ints, Floats]:
    n = simulated.pairs[:, :count].sum(axis=1)
    return n, t_of(n, simulated.total[:, :count].sum(axis=1), simulated.squares[:, :count].sum(axis=1))


def plain_rule(simulated: Simulated, shares: int = 1) -> Floats:
    """The t over all pairs at alpha, as if nobody had looked before."""
    claims = np.zeros_like(simulated.own)
    for count in range(2, MOST + 1):
        n, t = _pooled_t(simulated, count)
        claims[:, count - 1] = np.sign(t) * (np.abs(t) >= t_isf(ALPHA / shares / 2.0, n - 1))
    return claims


def uncorrected_rule(simulated: Simulated, shares: int = 1) -> Floats:
    """The halved shares of alpha, without counting the pairs that early stops saved."""
    claims = np.zeros_like(simulated.own)
    for count in range(2, MOST + 1):
        n, t = _pooled_t(simulated, count)
        alpha = alpha_of_pooling(ALPHA, count) / shares
        claims[:, count - 1] = np.sign(t) * (np.abs(t) >= t_isf(alpha / 2.0, n - 1))
    return claims


def inverse_normal_rule(simulated: Simulated, shares: int = 1) -> Floats:
    """Inverse normal of each experiment's t with equal weights, at the halved shares (Lehmacher & Wassmer 1999)."""
    n = simulated.pairs
    tail = np.clip(t_sf(t_of(n, simulated.total, simulated.squares), n - 1), 1e-300, 1.0 - 1e-16)
    z = np.cumsum(norm_isf(tail), axis=1) / np.sqrt(np.arange(1, MOST + 1))
    claims = np.zeros_like(simulated.own)
    for count in range(2, MOST + 1):
        alpha = alpha_of_pooling(ALPHA, count) / shares
        at_count = z[:, count - 1]
        claims[:, count - 1] = np.sign(at_count) * (np.abs(at_count) >= norm_isf(alpha / 2.0))
    return claims


def anytime_rule(simulated: Simulated, shares: int = 1, strictness: float = 1.0) -> Floats:
    """The anytime-valid t over all pairs, at an e-value of strictness / alpha."""
    claims = np.zeros_like(simulated.own)
    for count in range(2, MOST + 1):
        n, t = _pooled_t(simulated, count)
        r = 1.0 / (1.0 + n)
        df = n - 1
        log_e = 0.5 * np.log(r) + n / 2.0 * (np.log1p(t**2 / df) - np.log1p(r * t**2 / df))
        claims[:, count - 1] = np.sign(t) * (log_e >= math.log(strictness * shares / ALPHA))
    return claims


def strict_anytime_rule(simulated: Simulated, shares: int = 1) -> Floats:
    return anytime_rule(simulated, shares, strictness=5.0)


RULES: dict[str, Callable[[Simulated], Floats]] = {
    "**this rule**": pooled_rule,
    "t over all pairs at alpha": plain_rule,
    "halved shares, early stops ignored": uncorrected_rule,
    "inverse normal, halved shares": inverse_normal_rule,
    "anytime-valid t, e-value 20": anytime_rule,
    "anytime-valid t, e-value 100": strict_anytime_rule,
}


def launching(simulated: Simulated, claims: Floats) -> dict[str, Bools]:
    """Return, per rule of launching, whether a pooled claim is made when no further experiment is launched."""
    first_open = simulated.own[:, 0] == 0.0
    pooled = claims != 0.0
    any_pooled = pooled[:, 1:].any(axis=1)
    return {
        "always 2": pooled[:, 1],
        "always 3": pooled[:, 2],
        "2nd if the 1st is open": first_open & pooled[:, 1],
        "2nd if the 1st claims": ~first_open & pooled[:, 1],
        f"until the pooled claims, at most {MOST}": any_pooled,
        "the same, if the 1st is open": first_open & any_pooled,
        "1st alone or 2 pooled": ~first_open | pooled[:, 1],
    }


def percent(values: Bools) -> str:
    return f"{100.0 * float(np.mean(values)):.2f}"


PLANS = (planned(6), planned(10), planned(20), planned(30), Plan(20, (6, 8, 10, 12, 14, 16, 18, 20)))


def null_table() -> Iterator[list[str]]:
    header: list[str] = []
    for name, law in LAWS.items():
        for plan in PLANS:
            simulated = simulate(plan, law, 0.0, EXPERIMENTS)
            rates = launching(simulated, pooled_rule(simulated))
            if not header:
                header = ["law", "plan", *rates]
                yield header
            yield [name, plan.words, *map(percent, rates.values())]
    shares = 3
    simulated = simulate(planned(20), normal, 0.0, EXPERIMENTS, shares)
    rates = launching(simulated, pooled_rule(simulated, shares))
    yield ["normal, one of three comparisons", planned(20).words, *map(percent, rates.values())]


def rules_table() -> Iterator[list[str]]:
    simulated_null = simulate(planned(20), normal, 0.0, EXPERIMENTS)
    header: list[str] = []
    for name, rule in RULES.items():
        rates = launching(simulated_null, rule(simulated_null))
        if not header:
            header = ["rule", *rates]
            yield header
        yield [name, *map(percent, rates.values())]


def power_table() -> Iterator[list[str]]:
    cells = [(seeds, difference) for seeds in (6, 20) for difference in (0.3, 0.5, 0.8)]
    simulated = [simulate(planned(seeds), normal, difference, EXPERIMENTS // 4) for seeds, difference in cells]
    yield ["rule", *(f"{seeds} seeds, {difference} SD" for seeds, difference in cells)]
    yield ["one experiment alone", *(percent(cell.own[:, 0] > 0.0) for cell in simulated)]
    for name, rule in RULES.items():
        yield [name, *(percent(rule(cell)[:, 1] > 0.0) for cell in simulated)]


def coverage_table() -> Iterator[list[str]]:
    """How often the pooled interval contains the true difference, with the halved shares and the counted pairs."""
    yield [
        "plan",
        "true difference",
        "2 experiments (97.5)",
        "3 experiments (98.75)",
        "2nd only if the 1st is open (97.5)",
    ]
    for plan in (planned(6), planned(20), PLANS[-1]):
        for difference in (0.0, 0.5, 1.0):
            simulated = simulate(plan, normal, difference, EXPERIMENTS // 2)
            covers = [covered(simulated, count, difference) for count in (2, 3)]
            first_open = simulated.own[:, 0] == 0.0
            yield [plan.words, f"{difference:g} SD", *map(percent, covers), percent(covers[0][first_open])]


def covered(simulated: Simulated, count: int, difference: float) -> Bools:
    n, _ = _pooled_t(simulated, count)
    total = simulated.total[:, :count].sum(axis=1)
    squares = simulated.squares[:, :count].sum(axis=1)
    centred = squares - 2.0 * difference * total + n * difference**2
    t = t_of(n, total - n * difference, centred)
    inflation = np.sqrt(simulated.plan.seeds * count / n)
    return np.asarray(np.abs(t) <= t_isf(alpha_of_pooling(ALPHA, count) / 2.0, n - 1) * inflation)


def mean_table() -> Iterator[list[str]]:
    """Coverage of the interval of a mean over experiments of different plans."""
    yield ["experiments", "pairs", "tau, in SDs of a pair", "Knapp-Hartung", "with its floor (used)"]
    for seeds in ((6, 10, 20), (10, 10, 10), (6, 6, 10, 20, 30), (10,) * 10):
        for tau in (0.0, 0.2, 0.5):
            plain_covers, floored_covers = zip(*_simulated_means(seeds, tau), strict=True)
            pairs = ", ".join(map(str, seeds)) if len(set(seeds)) > 1 else f"{seeds[0]} each"
            yield [
                str(len(seeds)),
                pairs,
                f"{tau:g}",
                percent(np.array(plain_covers)),
                percent(np.array(floored_covers)),
            ]


def _simulated_means(seeds: tuple[int, ...], tau: float) -> Iterator[tuple[bool, bool]]:
    rng = np.random.default_rng([RNG_SEED, *seeds, round(100 * tau)])
    for _ in range(MEANS):
        samples = [rng.standard_normal(n) + tau * rng.standard_normal() for n in seeds]
        estimates = [float(sample.mean()) for sample in samples]
        variances = [float(sample.var(ddof=1)) / sample.size for sample in samples]
        plain_mean = random_effects(estimates, variances, floor=False)
        floored_mean = random_effects(estimates, variances)
        yield plain_mean.low <= 0.0 <= plain_mean.high, floored_mean.low <= 0.0 <= floored_mean.high


def main() -> None:
    """Replace the tables between the page's markers."""
    tables = {
        "null": null_table,
        "rules": rules_table,
        "power": power_table,
        "coverage": coverage_table,
        "mean": mean_table,
        "tasks": tasks_table,
    }
    replace_tables(PAGE, tables)


if __name__ == "__main__":
    main()
