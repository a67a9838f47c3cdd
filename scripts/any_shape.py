"""Simulate plans with `--shape any`, and write their error rates and their price into docs/evidence/rates.md.

    scripts/any_shape    (a minute)

The t-test and its looks are those of tests/simulation, written anew; the evidence is that of the package. All means are
equal, so every claim is false. The range of outcomes is declared so wide that a run lies outside it in fewer than one
of 10,000 cases, unless stated; outcomes seen beyond it widen it, as in the product.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from simulation.laws import Bools, Floats  # noqa: E402
from simulation.procedure import ALPHA, Rule, anytime  # noqa: E402

from esper_ab.design.any_shape import fewest_pairs, required_evidence  # noqa: E402
from esper_ab.stats.bounded_mean import log_evidence  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "rates.md"
BEGIN = "<!-- any shape tables -->\n"
END = "<!-- /any shape tables -->"
EXPERIMENTS = 20_000
PATHS = 200_000
RNG_SEED = 66
PLANS = ((6,), (10,), (15,), (14, 20), (16, 20, 30))
TASKS = 4
UNSEEN = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.1)  # of the hardest laws; the worst is shown
# Outcomes [experiments, pairs] with mean 0 from standard normals, which may correlate within pairs.
Runs = Callable[[np.random.Generator, Floats], Floats]


@dataclass(frozen=True)
class Law:
    """The outcomes of a group and of a control, and the range that is declared."""

    name: str
    group: Runs
    control: Runs
    low: float
    high: float
    correlation: float = 0.0

    def draw(self, rng: np.random.Generator, size: tuple[int, int], groups: int = 1) -> list[Floats]:
        """Return the outcomes of `groups` groups, then of the control."""
        common_part = math.sqrt(self.correlation) * rng.standard_normal(size)
        own = math.sqrt(1.0 - self.correlation)
        runs = (*[self.group] * groups, self.control)
        return [law(rng, common_part + own * rng.standard_normal(size)) for law in runs]


@dataclass(frozen=True)
class HardestLaw:
    """All groups but the control fail together, so often that none of `pairs` pairs is struck with the chance `unseen`.

    The control then has its best outcome, so the whole range is lost; in all other pairs the groups are a little better
    than the control.
    """

    pairs: int
    unseen: float
    name: str = "the hardest of the range"
    high: float = 0.0

    @property
    def lead(self) -> float:
        """How much better the groups are where they do not fail."""
        share = 1.0 - self.unseen ** (1.0 / self.pairs)
        return share / (1.0 - share)

    @property
    def low(self) -> float:
        """The outcome of a failure, or that of the control in all other pairs if it is lower."""
        return -max(1.0, self.lead)

    def draw(self, rng: np.random.Generator, size: tuple[int, int], groups: int = 1) -> list[Floats]:
        """Return the outcomes of `groups` groups, then of the control."""
        is_failure = rng.random(size) < 1.0 - self.unseen ** (1.0 / self.pairs)
        noise = 1e-4 * rng.random((groups, *size))  # without which no t-test applies
        outcomes = [np.where(is_failure, -1.0, -one_noise) for one_noise in noise]
        return [*outcomes, np.where(is_failure, 0.0, -self.lead)]


def normal(sd: float) -> Runs:
    return lambda rng, z: sd * z


def skewed(skewness: float) -> Runs:
    shape = 4.0 / skewness**2
    return lambda rng, z: (shape - rng.gamma(shape, size=z.shape)) / shape**0.5


def collapsing(share: float, depth: float, sd: float) -> Runs:
    return lambda rng, z: sd * z + depth * (share - (rng.random(z.shape) < share))


def learning(chance: float) -> Runs:
    return lambda rng, z: (rng.random(z.shape) < chance) - chance + 0.02 * z


def laws() -> list[Law]:
    """Return the laws of the first table."""
    tight = normal(0.15)
    found = [
        Law(f"skewness {skewness:g}; SD 0.15", skewed(skewness), tight, low, 2.0)
        for skewness, low in ((1.0, -6.0), (2.0, -8.3), (3.5, -11.5), (6.0, -17.0))
    ]
    found.append(Law("15 % x 20; SD 3.5", collapsing(0.15, 20.0, 3.5), normal(3.5), -31.0, 17.0))
    for share, depth in ((0.15, 20.0), (0.05, 50.0), (0.02, 60.0)):
        low = -depth * (1.0 - share) - 4.0
        name = f"{100 * share:g} % x {depth:g}; SD 1, correlation 0.9"
        found.append(Law(name, collapsing(share, depth, 1.0), normal(1.0), low, 4.0 + depth * share, 0.9))
    found.append(Law("half of both groups learn", learning(0.5), learning(0.5), -0.6, 0.6))
    found.append(Law("normal", normal(1.0), normal(1.0), -4.0, 4.0))
    return found


def claims(d: Floats, size: float, seen: Floats, rule: Rule, comparisons: int = 1) -> tuple[Bools, Bools]:
    """Return whether the t-test, and whether both kinds of evidence, claim a difference at any look [experiments].

    `d` [experiments, pairs]; `seen` [experiments, pairs]: the largest difference of outcomes seen so far, or less.
    """
    by_t = np.zeros(len(d), dtype=bool)
    by_both = np.zeros(len(d), dtype=bool)
    share = np.array([ALPHA / comparisons])
    required = math.log(required_evidence(ALPHA / comparisons))
    for place, look in enumerate(rule.looks):
        x = d[:, :look]
        t = x.mean(axis=1) / np.maximum(x.std(axis=1, ddof=1), 1e-300) * math.sqrt(look)
        crossed = np.abs(t) >= rule.critical(place, share)[0][look]
        by_t |= crossed
        if not crossed.any():
            continue
        sizes = np.maximum(size, seen[crossed, look - 1])
        side = np.sign(t[crossed])[:, None]
        standardised = side * x[crossed] / sizes[:, None]
        by_both[np.flatnonzero(crossed)[log_evidence(standardised, 1.0) >= required]] = True
    return by_t, by_both


def error(
    law: Law | HardestLaw, rule: Rule, groups: int, rng: np.random.Generator, tasks: int = 1
) -> tuple[float, float]:
    """Return the rates, in percent, of any false claim by the t-test and by both kinds of evidence.

    All pairs of groups are compared; with several tasks, also on the mean over them.
    """
    pairs = rule.looks[-1]
    pairings = list(combinations(range(groups + 1), 2))
    comparisons = len(pairings) * (tasks if tasks == 1 else tasks + 1)
    drawn = [law.draw(rng, (EXPERIMENTS, pairs), groups) for _ in range(tasks)]
    if tasks > 1:
        drawn.append([np.mean(outcomes, axis=0) for outcomes in zip(*drawn, strict=True)])
    any_claim = np.zeros((2, EXPERIMENTS), dtype=bool)
    for outcomes in drawn:
        for a, b in pairings:
            both = np.stack((outcomes[a], outcomes[b]))
            top = np.maximum.accumulate(np.maximum(both.max(axis=0), law.high), axis=1)
            bottom = np.minimum.accumulate(np.minimum(both.min(axis=0), law.low), axis=1)
            any_claim |= np.stack(claims(both[0] - both[1], law.high - law.low, top - bottom, rule, comparisons))
    by_t, by_both = 100.0 * any_claim.mean(axis=1)
    return float(by_t), float(by_both)


def error_table() -> Iterable[str]:
    yield paragraph(
        "**Groups of unequal shape with `--shape any`**: false claims in percent, by the t-test alone / with --shape "
        f"any, all means equal; {EXPERIMENTS:,} experiments a cell. Pairs with the default looks; all pairs of three "
        f"groups, two of which have the first law; {TASKS} tasks with their mean; a look after every pair to "
        "40. *The hardest*: a "
        "difference of the whole range, so rare that no pair has one with a chance of 0.2 to 10 %, and otherwise one "
        "small difference; the worst of nine chances."
    )
    headers = ["laws", *(f"{plan[-1]} pairs" for plan in PLANS), "3 groups, 20", f"{TASKS} tasks, 20", "anytime"]
    yield from head(headers)
    rules = [Rule(plan, paths=PATHS) for plan in PLANS]
    for number, law in enumerate([*laws(), None]):
        cells = []
        for place, rule in enumerate([*rules, rules[3], rules[3], anytime(40)]):
            rng = np.random.default_rng([RNG_SEED, number, place])
            used_laws = [law] if law else [HardestLaw(rule.looks[0], unseen) for unseen in UNSEEN]
            groups = 2 if place == len(rules) else 1
            tasks = TASKS if place == len(rules) + 1 else 1
            by_t, by_both = np.max([error(used_law, rule, groups, rng, tasks) for used_law in used_laws], axis=0)
            cells.append(f"{by_t:.1f} / {by_both:.1f}")
        yield row([used_laws[0].name, *cells])
    yield ""


def narrow_table() -> Iterable[str]:
    yield paragraph(
        "**A range declared too narrow**, 20 pairs: the depth of the collapses that the declared range allows, of "
        "collapses of 20 in 15 % of the runs of one group (SD 1, correlation 0.9). Where a collapse was seen, it "
        "widens the range; where none was, the guarantee is only that of the declared depth."
    )
    depths = (20.0, 10.0, 5.0, 2.0)
    yield from head(["", *(f"{depth:g}" for depth in depths)])
    cells = []
    for number, depth in enumerate(depths):
        law = Law("", collapsing(0.15, 20.0, 1.0), normal(1.0), -0.85 * depth - 4.0, 4.0 + 0.15 * 20.0, 0.9)
        rng = np.random.default_rng([RNG_SEED, 50, number])
        cells.append(f"{error(law, Rule((14, 20), paths=PATHS), 1, rng)[1]:.1f}")
    yield row(["false claims, %", *cells])
    yield ""


def price_table() -> Iterable[str]:
    yield paragraph(
        "**The price**: pairs for 80 % power at normal differences, by the t-test / with --shape any / the fewest with "
        "which any test can keep its error for every shape. Differences and the range (the largest possible "
        "difference) are in SDs of a difference; one comparison, one look."
    )
    differences = (0.5, 1.0, 2.0, 3.0)
    yield from head(["range", *(f"difference {difference:g}" for difference in differences)])
    for size in (3.0, 5.0, 10.0, 20.0, 50.0):
        cells = []
        for difference in differences:
            by_t = _pairs_by_t(difference)
            by_both = max(by_t, fewest_pairs(1.0, difference, size, required_evidence(ALPHA)))
            # A failure of the largest size, just so frequent that the mean is 0, strikes none of n pairs with a chance
            # of (1 + c / s)^-n. A test that errs there in alpha / 2 has at most the power alpha / 2 * (1 + c / s)^n.
            least = max(by_t, math.ceil(math.log(0.8 * 2.0 / ALPHA) / math.log1p(difference / size)))
            cells.append(f"{by_t} / {by_both} / {least}")
        yield row([f"{size:g}", *cells])
    yield ""


def _pairs_by_t(difference: float) -> int:
    pairs = 6
    while stats.nct.sf(stats.t.isf(ALPHA / 2, pairs - 1), pairs - 1, difference * math.sqrt(pairs)) < 0.8:
        pairs += 1
    return pairs


def candidates_table() -> Iterable[str]:
    yield paragraph(
        "**What else was tried**, as a second condition beside the t-test, 20 pairs and one look: false claims, "
        "for the hardest law also at an eighth of alpha (as for eight comparisons; limit 0.6), and power at one "
        "and two SDs of a difference with a range of 10. Johnson's t corrects for the skewness seen; *further "
        "pair*: the claim survives one more pair with the largest loss; *unseen share*: the mean stays on its side "
        "if the failures that may be unseen (2.5 %) have the largest loss; Gaffke's bound: the mean of the "
        "differences and of one largest loss, weighted at random, lies on its side in 97.5 % of weightings. Only "
        "the last row is proven to keep its error at all looks together and to give an interval."
    )
    chosen = [law for law in laws() if law.name.startswith(("skewness 2", "skewness 3.5", "15 % x 20; SD 1", "5 %"))]
    names = [*(law.name for law in chosen), "hardest", "hardest, alpha/8", "power, 1 SD", "2 SD"]
    yield from head(["second condition", *names])
    size = (10_000, 20)
    columns = []
    for number, law in enumerate(chosen):
        a, b = law.draw(np.random.default_rng([RNG_SEED, 60, number]), size)
        columns.append([_candidates(a - b, law.high - law.low, ALPHA)])
    for alpha in (ALPHA, ALPHA / 8):
        columns.append([])
        for unseen in UNSEEN:
            a, b = HardestLaw(20, unseen).draw(np.random.default_rng([RNG_SEED, 60, 9]), size)
            columns[-1].append(_candidates(a - b, 1.0, alpha))
    rng = np.random.default_rng([RNG_SEED, 61])
    columns += [[_candidates(effect + rng.standard_normal(size), 10.0, ALPHA)] for effect in (1.0, 2.0)]
    for name in columns[0][0]:
        yield row([name, *(f"{max(100.0 * result[name].mean() for result in column):.1f}" for column in columns)])
    yield ""


def _candidates(d: Floats, size: float, alpha: float) -> dict[str, Bools]:
    """Return by rule whether it claims that the mean of d [experiments, pairs] is not 0."""
    pairs = d.shape[1]
    sd = d.std(axis=1, ddof=1)
    t = d.mean(axis=1) / sd * math.sqrt(pairs)
    side = np.sign(t)[:, None]
    x = np.maximum(side * d / size, -1.0)
    mean = x.mean(axis=1)
    reach = stats.t.isf(alpha / 2, pairs - 1)
    by_t = np.abs(t) >= reach
    third = ((d - d.mean(axis=1, keepdims=True)) ** 3).mean(axis=1)
    johnson = (d.mean(axis=1) + third / (6 * sd**2 * pairs) + third * d.mean(axis=1) ** 2 / (3 * sd**4)) / sd
    share = 1.0 - (alpha / 2) ** (1 / pairs)
    longer = np.concatenate((x, np.full((len(x), 1), -1.0)), axis=1)
    longer_t = longer.mean(axis=1) / longer.std(axis=1, ddof=1) * math.sqrt(pairs + 1)
    weights = np.random.default_rng(RNG_SEED).standard_exponential((4_000, pairs + 1))
    gaffke = np.mean(longer @ weights.T <= 0.0, axis=1) <= alpha / 2
    return {
        "none (the t-test alone)": by_t,
        "the t-test at a fifth of alpha": np.abs(t) >= stats.t.isf(alpha / 10, pairs - 1),
        "Johnson's t": by_t & (np.sign(t) * johnson * math.sqrt(pairs) >= reach),
        "further pair": by_t & (longer_t >= stats.t.isf(alpha / 2, pairs)),
        "unseen share": by_t & ((1.0 - share) * mean > share),
        "Gaffke's bound": by_t & gaffke,
        "bets, --shape any": by_t & (log_evidence(x, 1.0) >= math.log(required_evidence(alpha))),
    }


def head(titles: Sequence[str]) -> Iterable[str]:
    yield row(titles)
    yield row(["---"] * len(titles))


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def paragraph(text: str) -> str:
    return textwrap.fill(text, 118, break_on_hyphens=False) + "\n"


def main() -> None:
    before, _, old_section = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = old_section.partition(END)[2]
    lines = [*error_table(), *narrow_table(), *price_table(), *candidates_table()]
    PAGE.write_text(f"{before}{BEGIN}{chr(10).join(lines).rstrip()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
