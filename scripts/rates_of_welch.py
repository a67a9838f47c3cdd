"""Rules for the standard error of unpaired groups of unequal number, for scripts/unpaired_rates.

The standard error is at least that of a common standard deviation always, never, if the |skewness| of the larger group
is above 1/2, or of either group. By the last two, `least 2/3` and `least 3/5`, the smaller group's SD also counts as at
least that share of the larger group's. The package uses `least 2/3`; its code is not used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special
from simulation.laws import SHAPES, Bools, Floats, mixture, runs

EXPERIMENTS = 10_000
NUMBERS = ((6, 10), (6, 40), (10, 20), (10, 100), (10, 200), (20, 40), (20, 200))
EQUAL = ((6, 6), (10, 10), (20, 20))
LARGE = ((15, 20), (15, 200), (20, 40), (20, 200))  # may show EQUIVALENT
RULES = ("always", "larger skewed", "either skewed", "least 2/3", "least 3/5", "never")
SKEWED = {f"skewness {skewness:g}": skewness for skewness in (0.5, 0.7, 1.0, 2.0, 3.5, 6.0)}
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def gamma(skewness: float) -> Draw:
    """Outcomes with mean 0, SD 1 and this skewness to the left."""
    shape = 4.0 / skewness**2
    return lambda rng, size: -(rng.gamma(shape, size=size) - shape) / np.sqrt(shape)


def of_shape(name: str) -> Draw:
    return lambda rng, size: runs(name, rng.standard_normal(size))


SHAPES["5 % of runs collapse"] = mixture(0.05, 20)
LAWS: dict[str, Draw] = {name: of_shape(name) for name in SHAPES} | {
    name: gamma(skewness) for name, skewness in SKEWED.items()
}


def t_and_df(a: Floats, b: Floats) -> tuple[dict[str, Floats], Floats]:
    """Welch's t of a [experiments, n] against b [experiments, m >= n] by every rule, and its degrees of freedom."""
    n = a.shape[1]
    m = b.shape[1]
    var_a = a.var(axis=1, ddof=1)
    var_b = b.var(axis=1, ddof=1)
    term_a = var_a / n
    term_b = var_b / m
    own_error = np.sqrt(term_a + term_b)
    df = (term_a + term_b) ** 2 / (term_a**2 / (n - 1) + term_b**2 / (m - 1))
    common_error = np.sqrt(((n - 1) * var_a + (m - 1) * var_b) / (n + m - 2) * (1 / n + 1 / m))
    larger_is_skewed = skewed(b)
    any_is_skewed = skewed(a) | skewed(b)
    difference = a.mean(axis=1) - b.mean(axis=1)
    floor = np.maximum(own_error, common_error)
    errors = {
        "always": floor,
        "larger skewed": np.where(larger_is_skewed, floor, own_error),
        "either skewed": np.where(any_is_skewed, floor, own_error),
        "never": own_error,
    }
    for name, least_share in (("least 2/3", 2 / 3), ("least 3/5", 3 / 5)):
        wide_error = np.sqrt(least_share**2 * var_b / n + term_b)
        errors[name] = np.where(any_is_skewed, floor, np.maximum(own_error, np.minimum(common_error, wide_error)))
    return {name: difference / errors[name] for name in RULES}, df


def skewed(x: Floats) -> Bools:
    """Whether the |skewness| of the runs x [experiments, runs] is above 1/2; not if they are all equal."""
    deviations = x - x.mean(axis=1, keepdims=True)
    return np.abs((deviations**3).mean(axis=1)) > 0.5 * (deviations**2).mean(axis=1) ** 1.5


def rates(
    laws: tuple[Draw, Draw], numbers: tuple[int, int], sd: float, lead: float = 0.0
) -> dict[str, tuple[float, float]]:
    """By rule: the share (%) of two-sided p <= 0.05, and the larger share of one-sided p <= 0.05, of either side.

    The SD of the larger group is `sd` times that of the smaller one, whose mean is higher by `lead` of its SDs.
    """
    rng = np.random.default_rng([*numbers, round(100 * sd)])
    (smaller_law, larger_law) = laws
    (n, m) = numbers
    t_by_rule, df = t_and_df(smaller_law(rng, (EXPERIMENTS, n)) + lead, sd * larger_law(rng, (EXPERIMENTS, m)))
    return {
        name: (
            100 * float(np.mean(2 * special.stdtr(df, -np.abs(t)) <= 0.05)),
            100 * max(float(np.mean(special.stdtr(df, side * t) <= 0.05)) for side in (1.0, -1.0)),
        )
        for name, t in t_by_rule.items()
    }


def row(title: str, cells: list[float]) -> list[str]:
    return [title, *(f"{cell:.1f}" for cell in cells)]


def worst(laws: list[tuple[Draw, Draw]], numbers: tuple[tuple[int, int], ...], sd: float, side: int) -> list[float]:
    """By rule, the largest rate over laws and numbers of runs; `side` 0: two-sided, 1: one-sided."""
    rates_of_designs = [rates(pair, sizes, sd) for pair in laws for sizes in numbers]
    return [max(design_rates[name][side] for design_rates in rates_of_designs) for name in RULES]


def false_claims() -> Iterator[list[str]]:
    """Yield the rates of every rule, by the laws of the groups."""
    yield ["law of the groups", *RULES]
    same = {name: (law, law) for name, law in LAWS.items()}
    others = [pair for name, pair in same.items() if name not in ("normal", "uniform")]
    yield row("both normal", worst([same["normal"]], NUMBERS, 1.0, 0))
    yield row("both uniform", worst([same["uniform"]], NUMBERS, 1.0, 0))
    yield row(f"both of one other law, worst of {len(others)}", worst(others, NUMBERS, 1.0, 0))
    yield row("the same, equal numbers of 6, 10 or 20 runs", worst(others, EQUAL, 1.0, 0))
    yield row(f"one-sided (EQUIVALENT), worst of {len(same)}", worst([*same.values()], LARGE, 1.0, 1))
    shown = ("4 % of runs collapse", "5 % of runs collapse", "15 % of runs collapse", "lognormal", "skewness 2")
    for name in (*shown, "skewness 6"):
        yield row(f"only the smaller group: {name}", worst([(LAWS[name], LAWS["normal"])], NUMBERS, 1.0, 0))
    collapse = same["5 % of runs collapse"]
    yield row("5 % of runs collapse, SD of the larger group 1/4", worst([collapse], NUMBERS, 0.25, 0))


def power() -> Iterator[list[str]]:
    """Yield the power at one SD of the smaller group, by the SD of the larger one."""
    yield ["runs", "SD of the larger group", *RULES]
    for numbers in ((6, 40), (10, 100), (20, 40)):
        for sd in (1.0, 1.5, 2.0):
            rates_by_rule = rates((LAWS["normal"], LAWS["normal"]), numbers, sd, 1.0)
            yield [f"{numbers[0]}, {numbers[1]}", *row(f"{sd:g}", [rates_by_rule[name][0] for name in RULES])]
