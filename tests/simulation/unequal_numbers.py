"""When a common spread should enter Welch's standard error, for unpaired groups of unequal number.

    PYTHONPATH=tests python -m simulation.unequal_numbers

prints the table of docs/evidence/rates.md (two minutes on one core). The columns are rules: the standard error is at
least that of a common standard deviation always, never, if the |skewness| of the larger group is above 1/2, or of
either group. By the last two, `least 2/3` and `least 3/5`, the smaller group's SD also counts as at least that share of
the larger group's. The package uses `least 2/3`; its code is not used here.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from simulation.laws import SHAPES, Bools, Floats, mixture, runs

EXPERIMENTS = 10_000
NUMBERS = ((6, 10), (6, 20), (6, 40), (10, 20), (10, 40), (10, 100), (10, 200), (20, 40), (20, 100), (20, 200))
LARGE = tuple(pair for pair in (*NUMBERS, (15, 20), (15, 40), (15, 200)) if pair[0] >= 15)  # may show EQUIVALENT
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


def row(title: str, cells: list[float]) -> str:
    return f"| {title} | {' | '.join(f'{cell:.1f}' for cell in cells)} |"


def head(first_column: str) -> str:
    return f"| {first_column} | {' | '.join(RULES)} |\n|---|{'---|' * len(RULES)}"


def worst(
    laws: tuple[Draw, Draw], numbers: tuple[tuple[int, int], ...], sds: tuple[float, ...], side: int
) -> list[float]:
    """By rule, the largest rate over numbers of runs and SDs; `side` 0: two-sided, 1: one-sided."""
    rates_of_designs = [rates(laws, pair, sd) for pair in numbers for sd in sds]
    return [max(design_rates[name][side] for design_rates in rates_of_designs) for name in RULES]


def main() -> None:
    print("False claims, equal SDs; in the second table, the SD of the larger group is 1/4 to 4 of the smaller's.\n")
    for sds in ((1.0,), (0.25, 0.5, 2.0, 4.0)):
        print(head("law of both groups"))
        for name, law in LAWS.items():
            print(row(name, worst((law, law), NUMBERS, sds, 0)), flush=True)
        print()
    print("One-sided errors at 0.05, as of EQUIVALENT, equal SDs; 15 runs or more.\n")
    print(head("law of both groups"))
    for name, law in LAWS.items():
        print(row(name, worst((law, law), LARGE, (1.0,), 1)), flush=True)
    print("\nFalse claims, where only the smaller group has the law and the larger one is normal with the same SD.\n")
    print(head("law of the smaller group"))
    for name, law in LAWS.items():
        print(row(name, worst((law, LAWS["normal"]), NUMBERS, (1.0,), 0)), flush=True)
    print("\nPower, normal laws, at a difference of one SD of the smaller group.\n")
    print(head("runs, SD of the larger group"))
    for numbers in ((6, 20), (6, 40), (10, 40), (10, 100), (20, 40)):
        for sd in (1.0, 1.5, 2.0):
            rates_by_rule = rates((LAWS["normal"], LAWS["normal"]), numbers, sd, 1.0)
            print(row(f"{numbers[0]}, {numbers[1]}; {sd:g}", [rates_by_rule[name][0] for name in RULES]), flush=True)


if __name__ == "__main__":
    main()
