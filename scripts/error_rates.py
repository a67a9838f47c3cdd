"""Simulate how often plans err between groups of unequal shape, and write the rates into the package and the docs.

    scripts/error_rates            write the table that the package uses: esper_ab/stats/error_rate_table.py
    scripts/error_rates --pages    write the tables on it in docs/evidence/rates.md
    scripts/error_rates --groups   write the tables of docs/evidence/many-groups.md (error_rate_groups.py)

The rules are those of tests/simulation, which are written anew and compared with the package
(tests/statistics/test_against_simulated.py). All means are equal, so every claim is false. Only the law of the
differences within pairs matters to the rule: a skewed law is a mirrored gamma law, which is that of a skewed group
against a tight one; a collapsing one is normal, but a share of the differences falls by `depth` SDs.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from simulation.laws import Floats  # noqa: E402
from simulation.procedure import ALPHA, Rule, anytime  # noqa: E402

TABLE = ROOT / "esper_ab" / "stats" / "error_rate_table.py"
PAIRS = (6, 8, 10, 14, 20, 30, 50)  # at the first look
COMPARISONS = (1, 2, 4, 8, 16)
SKEWNESS = (0.0, 1.0, 2.0, 3.5, 6.0)
SHARES = (0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3)
DEPTHS = (5.0, 10.0, 25.0, 50.0)
LARGE = 3.5  # skewness whose false claims tell how large a false claim may be
NORMAL, FALSE = 0.8, 0.99  # quantiles: of the skewness of normal differences, of the size of false claims
EXPERIMENTS = 20_000
PATHS = 200_000
RNG_SEED = 58
MOST_PAIRS = round(1.4 * PAIRS[-1])

Law = Callable[[np.random.Generator, tuple[int, int]], Floats]


def skewed(skewness: float) -> Law:
    """Return the law of differences with mean 0, SD 1 and a tail below."""
    if not skewness:
        return lambda rng, size: rng.standard_normal(size)
    shape = 4.0 / skewness**2
    return lambda rng, size: (shape - rng.gamma(shape, size=size)) / shape**0.5


def collapsing(share: float, depth: float) -> Law:
    """Return the law of differences with mean 0 of which a share falls by `depth` SDs of the others."""
    return lambda rng, size: rng.standard_normal(size) + depth * (share - (rng.random(size) < share))


def rules() -> list[Rule]:
    """Return the rules by which the table is indexed: one look, several looks, and a look after every pair."""
    single_looks = [Rule((pairs,), paths=PATHS) for pairs in PAIRS]
    two_look_rules = [Rule((pairs, round(1.4 * pairs)), paths=PATHS) for pairs in PAIRS]
    return [*single_looks, *two_look_rules, anytime(40)]


def t_values(d: Floats) -> Floats:
    """Return the t [pairs, experiments] of the first n of the differences d [experiments, pairs], for every n."""
    total, squares = (np.cumsum(x, axis=1).T for x in (d, d**2))
    n = np.arange(1, d.shape[1] + 1)[:, None]
    variance = np.maximum(squares - total**2 / n, 1e-300) / np.maximum(n - 1, 1)
    return np.asarray(total / n / np.sqrt(variance / n))


def crossings(t: Floats, rule: Rule, comparisons: int) -> Floats:
    """Return +1, -1 or 0 [looks, experiments] for t [pairs, experiments]: what each look claims at a share of alpha."""
    t = t[np.array(rule.looks) - 1]
    share = np.array([ALPHA / comparisons])
    reach = [rule.critical(k, share)[0][n] for k, n in enumerate(rule.looks)]
    return np.asarray(np.where(np.abs(t) >= np.array(reach)[:, None], np.sign(t), 0.0))


def error(t: Floats, rule: Rule, comparisons: int) -> float:
    """Return the share of experiments, in percent, that falsely claim any of as many independent differences."""
    single_rate = (crossings(t, rule, comparisons) != 0.0).any(axis=0).mean()
    return float(100.0 * (1.0 - (1.0 - single_rate) ** comparisons))


def skewness_against(d: Floats) -> Floats:
    """Return the sample skewness [experiments] of d, positive if the tail lies below."""
    centred_differences = d - d.mean(axis=1, keepdims=True)
    return np.asarray(-(centred_differences**3).mean(axis=1) / (centred_differences**2).mean(axis=1) ** 1.5)


def samples() -> tuple[list[list[float]], list[float], list[float]]:
    """Return what single looks see: [pairs, laws] and twice [pairs].

    The median skewness of samples that are falsely claimed to lie above 0, the skewness that most of the claims about
    normal differences do not exceed, and the mean in SDs that hardly any false claim about a skewed law exceeds.
    """
    medians = []
    usual_skewness = []
    largest_t = []
    for pairs in PAIRS:
        rng = np.random.default_rng([RNG_SEED, pairs])
        law_medians = []
        for law in SKEWNESS:
            d = skewed(law)(rng, (2 * EXPERIMENTS, pairs))
            t = t_values(d)
            skew = skewness_against(d)
            false = crossings(t, Rule((pairs,), paths=PATHS), 1)[0] > 0.0
            law_medians.append(round(float(np.median(skew[false])), 3) if law else 0.0)
            if not law:
                usual_skewness.append(round(float(np.quantile(skew, NORMAL)), 3))
            if law == LARGE:
                largest_t.append(round(float(np.quantile(t[-1][false], FALSE)) / pairs**0.5, 2))
        medians.append(law_medians)
    return medians, usual_skewness, largest_t


def rates(laws: dict[tuple[float, ...], Law]) -> dict[tuple[float, ...], list[list[float]]]:
    """Return by law the error rates [rules, comparisons] in percent."""
    rate_by_shape = {}
    for number, (key, law) in enumerate(laws.items()):
        t = t_values(law(np.random.default_rng([RNG_SEED, number]), (EXPERIMENTS, MOST_PAIRS)))
        rate_by_shape[key] = [[round(error(t, rule, count), 1) for count in COMPARISONS] for rule in rules()]
    return rate_by_shape


def write_table() -> None:
    """Write the module of rates."""
    medians, usual_skewness, largest_t = samples()
    skew_rates = rates({(skewness,): skewed(skewness) for skewness in SKEWNESS})
    collapse_rates = rates({(share, depth): collapsing(share, depth) for share in SHARES for depth in DEPTHS})
    plans = range(len(rules()))
    skew = [[[skew_rates[(law,)][plan][m] for law in SKEWNESS] for m in range(len(COMPARISONS))] for plan in plans]
    collapse = [
        [
            [[collapse_rates[(share, depth)][plan][m] for depth in DEPTHS] for share in SHARES]
            for m in range(len(COMPARISONS))
        ]
        for plan in plans
    ]
    TABLE.write_text(
        f'''"""Simulated error rates, written by `scripts/error_rates`; see `error_rates`. Rates are in percent.

Plans are one look after PAIRS pairs, then looks after PAIRS and 1.4 times as many, then a look after every pair from
the sixth to the fortieth. Comparisons are independent and share an alpha of 5 %.
"""

from __future__ import annotations

# fmt: off
PAIRS = {PAIRS}
COMPARISONS = {COMPARISONS}
SKEWNESS = {SKEWNESS}  # of the differences
SHARES = {SHARES}  # of the differences that collapse
DEPTHS = {DEPTHS}  # of a collapse, in SDs of the other differences
# [pairs]: the skewness that 80 % of samples of normal differences do not exceed
USUAL = {tuple(usual_skewness)}
# [pairs]: the mean, in SDs, that 99 % of false claims at a skewness of {LARGE} do not exceed
LARGEST = {tuple(largest_t)}
# [pairs][laws]: the median skewness of samples of which a difference is falsely claimed
SAMPLE = {_lines(medians)}
# [plans][comparisons][laws]
SKEWED = {_lines(skew)}
# [plans][comparisons][shares][depths]
COLLAPSES = {_lines(collapse)}
''',
        encoding="utf-8",
    )


def _lines(values: list[object]) -> str:
    """Write nested lists as tuples, each entry of the outermost list on lines of its own."""
    rows = (f"{_tuples(row)}," for row in values)
    filled_rows = [textwrap.fill(row, 118, initial_indent="    ", subsequent_indent="     ") for row in rows]
    return "(\n" + "\n".join(filled_rows) + "\n)"


def _tuples(values: object) -> object:
    return tuple(map(_tuples, values)) if isinstance(values, list) else values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="write the tables of docs/evidence/rates.md")
    parser.add_argument("--groups", action="store_true", help="write the tables of docs/evidence/many-groups.md")
    options = parser.parse_args()
    if options.pages:
        import error_rate_pages

        error_rate_pages.write()
    elif options.groups:
        import error_rate_groups

        error_rate_groups.write()
    else:
        write_table()


if __name__ == "__main__":
    main()
