"""The error rates and the power of `--claim not-worse`, for docs/evidence/rates.md: `scripts/claim_rates`.

The rule is written anew here from docs/internals/verdict-rules.md, by numpy and scipy and with the laws and two-sided
bounds of tests/simulation; nothing comes from `esper_ab`. It leaves out the sign-flip test, which only takes claims of
a difference away.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from simulation import laws, procedure  # noqa: E402
from simulation.procedure import ALPHA, SMALL_LEAST, Bools, Floats, Rule  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "rates.md"
BEGIN = "<!-- claims tables -->\n"
END = "<!-- /claims tables -->"
EXPERIMENTS = 20_000
PATHS = 1_000_000
RNG_SEED = 66
LOOKS = {15: (15,), 20: (20,), 30: (20, 30), 40: (20, 28, 40)}
CORRELATIONS = (0.0, 0.5, 0.9)
SCALES = {name: (1.0,) for name in laws.SHAPES} | {"normal, SD 0.5, 1, 2 in turn": (0.5, 1.0, 2.0)}
RARE = {"15 % x 20": (0.15, 20.0), "10 % x 25": (0.10, 25.0), "5 % x 45": (0.05, 45.0), "3 % x 80": (0.03, 80.0)}

Ints = NDArray[np.int64]


@dataclass
class Ends:
    """How each comparison ended [experiments, comparisons]."""

    crossed: Ints  # 1: better, -1: worse, 0: no difference was shown
    not_worse: Bools
    pairs: Ints  # used


@cache
def one_sided(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Return the one-sided p required at each look, from normal experiments; alpha is spent as by O'Brien-Fleming."""
    if len(looks) == 1:
        return (alpha,)
    rng = np.random.default_rng([RNG_SEED, 1])
    t = t_of(rng.standard_normal((PATHS // 10, 1, looks[-1])), looks)[:, :, 0]
    for _ in range(9):
        more = t_of(rng.standard_normal((PATHS // 10, 1, looks[-1])), looks)[:, :, 0]
        t = np.concatenate([t, more], axis=1)
    shown = np.zeros(t.shape[1], dtype=bool)
    bounds = []
    for place, look in enumerate(looks):
        spent = 2.0 * stats.norm.sf(stats.norm.isf(alpha / 2.0) / np.sqrt(look / looks[-1]))
        still = np.sort(t[place, ~shown])[::-1]
        limit = still[max(0, round(spent * t.shape[1]) - int(shown.sum()) - 1)]
        bounds.append(float(stats.t.sf(limit, look - 1)))
        shown |= t[place] >= limit
    bounds[0] = float(2.0 * stats.norm.sf(stats.norm.isf(alpha / 2.0) / np.sqrt(looks[0] / looks[-1])))
    return tuple(bounds)


def moments(differences: Floats, looks: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return mean and standard error at each look [looks, experiments, comparisons]."""
    n = np.array(looks)[:, None, None]
    total = np.cumsum(differences, axis=2)[:, :, [look - 1 for look in looks]].transpose(2, 0, 1)
    squares = np.cumsum(differences**2, axis=2)[:, :, [look - 1 for look in looks]].transpose(2, 0, 1)
    mean = total / n
    variance = np.maximum(squares / n - mean**2, 0.0) * n / (n - 1)
    return mean, np.sqrt(variance / n) + 1e-300


def t_of(differences: Floats, looks: tuple[int, ...]) -> Floats:
    """Return t at each look [looks, experiments, comparisons]."""
    mean, error = moments(differences, looks)
    return np.asarray(mean / error)


def judge(differences: Floats, looks: tuple[int, ...], margin: float, *, claims_not_worse: bool) -> Ends:
    """Take all looks at differences [experiments, comparisons, pairs]; a comparison that is decided stops."""
    experiments, comparisons, _ = differences.shape
    mean, error = moments(differences, looks)
    rule = Rule(looks, paths=PATHS)
    shape = (experiments, comparisons)
    ends = Ends(np.zeros(shape, np.int64), np.zeros(shape, bool), np.full(shape, looks[-1]))
    is_open = np.ones(shape, bool)
    shares = np.full(experiments, comparisons)  # comparisons that share alpha
    for place, look in enumerate(looks):
        reach = np.array([np.inf, *_two_sided(rule, place, look, comparisons)])
        while True:
            needed = reach[np.maximum(shares, 1)][:, None]
            crossing = is_open & (np.abs(mean[place]) >= needed * error[place])
            if not crossing.any():
                break
            beyond = crossing & (np.abs(mean[place]) - needed * error[place] >= margin)
            ends.crossed[crossing] = np.sign(mean[place][crossing]).astype(np.int64)
            ends.pairs[crossing] = look
            is_open &= ~crossing
            shares = shares - beyond.sum(axis=1)
        if claims_not_worse and look >= SMALL_LEAST:
            limit = stats.t.isf(one_sided(looks, ALPHA / comparisons)[place], look - 1)
            shown = is_open & (mean[place] + margin >= limit * error[place])
            ends.not_worse |= shown
            ends.pairs[shown] = look
            is_open &= ~shown
    if not claims_not_worse:
        ends.not_worse = _gate(mean[-1], error[-1], rule, is_open, margin)
    return ends


def _two_sided(rule: Rule, place: int, look: int, comparisons: int) -> Floats:
    """Return the |t| that shows a difference, by the number of comparisons that share alpha, from 1 on."""
    alphas = ALPHA / np.arange(1, comparisons + 1)
    nominal = alphas if len(rule.looks) == 1 else rule.nominal(place, alphas)
    return np.asarray(stats.t.isf(nominal / 2.0, look - 1))


def _gate(mean: Floats, error: Floats, rule: Rule, is_open: Bools, margin: float) -> Bools:
    """Return whether an open comparison of a plan for a difference passes `not-worse-than` at its last look."""
    last = len(rule.looks) - 1
    comparisons = mean.shape[1]
    alpha = np.array([ALPHA / comparisons])
    nominal = float((alpha if last == 0 else rule.nominal(last, alpha))[0])
    df = rule.looks[-1] - 1
    reach = stats.t.isf(nominal, df) * error  # of each of the two one-sided tests of EQUIVALENT
    equivalent = (mean + margin >= reach) & (margin - mean >= reach)
    repeated = mean + margin >= stats.t.isf(nominal / 2.0, df) * error
    enough = rule.looks[-1] >= SMALL_LEAST
    return np.asarray(is_open & (equivalent | repeated) & enough)


def experiments(law: str, groups: int, pairs: int, correlation: float, number: int, times: int = 1) -> Floats:
    """Return outcomes [experiments, groups, pairs] of groups with one law, a mean of 0 and an SD of 1 margin."""
    rng = np.random.default_rng([RNG_SEED, 2, number, times])
    z = laws.latent(rng, (times * EXPERIMENTS, groups, pairs), correlation)
    scales = np.resize(np.array(SCALES[law]), groups)[:, None]
    return laws.runs(law if law in laws.SHAPES else "normal", z) * scales


def table(heads: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield a table in Markdown."""
    for row in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(row)} |"


def paragraph(text: str) -> Iterator[str]:
    """Yield lines of text, with an empty one after them."""
    yield from textwrap.wrap(text, 120)
    yield ""


def false_claims() -> Iterator[str]:
    """Yield the table of false claims between groups of one shape."""
    yield from paragraph(
        "**False claims of `--claim not-worse`, groups of one shape**: any false claim among all comparisons with the "
        'control, in percent. "At the margin": every group is worse by exactly the margin, which NOT WORSE and BETTER '
        'deny. "Mixed": the groups are better by three margins, worse by the margin, and equal, in turn, and a claim '
        "is false if it denies this. The worst of plans of 15, 20, 30 (looks after 20, 30) and 40 seeds (20, 28, 40) "
        "and of correlations 0, 0.5 and 0.9 within pairs; SD 1 margin. 20,000 experiments a cell, and five times as "
        "many, anew, where a rate is two standard errors above 5."
    )
    rows = []
    for number, law in enumerate(SCALES):
        cells = [_worst(law, groups, number, mixed=False) for groups in (2, 3, 6)]
        cells += [_worst(law, groups, number, mixed=True) for groups in (3, 6)]
        rows.append([law, *(f"{100.0 * rate:.2f}" for rate in cells)])
    heads = ["law of all groups", "at the margin, 2 groups", "3 groups", "6 groups", "mixed, 3 groups", "6 groups"]
    yield from table(heads, rows)
    yield ""


def _worst(law: str, groups: int, number: int, *, mixed: bool) -> float:
    worst = 0.0
    for seeds, looks in LOOKS.items():
        for correlation in CORRELATIONS:
            code = 1000 * number + 100 * groups + seeds + round(10 * correlation) * 100_000
            rate = _false(experiments(law, groups, seeds, correlation, code), looks, mixed=mixed)
            if rate > ALPHA + 2.0 * np.sqrt(ALPHA * (1.0 - ALPHA) / EXPERIMENTS):
                rate = _false(experiments(law, groups, seeds, correlation, code, 5), looks, mixed=mixed)
            worst = max(worst, rate)
    return worst


def _false(x: Floats, looks: tuple[int, ...], *, mixed: bool) -> float:
    comparisons = x.shape[1] - 1
    means = np.full(comparisons, -1.0)
    if mixed:
        means = np.resize(np.array([3.0, -1.0, 0.0]), comparisons)
    ends = judge(x[:, :-1] + means[:, None] - x[:, -1:], looks, 1.0, claims_not_worse=True)
    is_wrong_sign = (ends.crossed != 0) & (ends.crossed != np.sign(means))
    is_false = is_wrong_sign | (ends.not_worse & (means <= -1.0))
    return float(is_false.any(axis=1).mean())


def power() -> Iterator[str]:
    """Yield the table of power beside the plan for a difference."""
    yield from paragraph(
        "**Power where nothing differs**: how often `b not-worse-than a` holds, and the mean number of pairs used, in "
        "a plan of `--claim not-worse` and in one for a difference with its default looks, by the SD of the "
        "differences in margins (two groups, normal)."
    )
    rows = []
    for seeds, looks in {**LOOKS, 60: (30, 42, 60)}.items():
        for sd in (0.75, 1.0, 1.5, 2.0, 3.0):
            rng = np.random.default_rng([RNG_SEED, 3, seeds])
            differences = sd * rng.standard_normal((EXPERIMENTS, 1, seeds))
            claim = judge(differences, looks, 1.0, claims_not_worse=True)
            plain = judge(differences, procedure.default_looks(seeds), 1.0, claims_not_worse=False)
            cells = [f"{sd:g}"]
            for ends in (claim, plain):
                passes = ends.not_worse | (ends.crossed > 0)
                cells += [f"{100.0 * passes.mean():.0f}", f"{ends.pairs.mean():.1f}"]
            rows.append([str(seeds), *cells])
    yield from table(["seeds", "SD", "not-worse: holds", "pairs", "difference: holds", "pairs"], rows)
    yield ""


def rare_collapses() -> Iterator[str]:
    """Yield the table of false claims where a group is worse only because of rare collapses."""
    yield from paragraph(
        "**Where a group is worse by more than the margin, all of it in rare collapses** (SD 1, correlation 0.9, "
        "margin 2): false NOT WORSE, and the gate `not-worse-than` in a plan for a difference. An early look misses "
        "more of them. So no default look of the claim comes before 20 seeds."
    )
    rows = []
    plans = {
        "not-worse, 15 seeds": ((15,), True),
        "not-worse, 20 seeds": ((20,), True),
        "not-worse, 20 seeds, --looks 16,20": ((16, 20), True),
        "not-worse, 30 seeds (looks after 20, 30)": ((20, 30), True),
        "not-worse, 30 seeds, --looks 16,20,30": ((16, 20, 30), True),
        "not-worse, 30 seeds, --looks 30": ((30,), True),
        "not-worse, 40 seeds (looks after 20, 28, 40)": ((20, 28, 40), True),
        "difference, 15 seeds": (procedure.default_looks(15), False),
        "difference, 20 seeds": (procedure.default_looks(20), False),
        "difference, 30 seeds": (procedure.default_looks(30), False),
        "difference, 40 seeds": (procedure.default_looks(40), False),
    }
    for name, (looks, claims_not_worse) in plans.items():
        cells = []
        for place, (rate, depth) in enumerate(RARE.values()):
            rng = np.random.default_rng([RNG_SEED, 4, looks[-1], place])
            x = laws.latent(rng, (EXPERIMENTS, 2, looks[-1]), 0.9)
            x[:, 0] -= depth * (rng.random((EXPERIMENTS, looks[-1])) < rate)
            ends = judge(x[:, :1] - x[:, 1:], looks, 2.0, claims_not_worse=claims_not_worse)
            cells.append(f"{100.0 * (ends.not_worse | (ends.crossed > 0)).mean():.1f}")
        rows.append([name, *cells])
    yield from table(["plan", *RARE], rows)


def write() -> None:
    """Write all tables between the marks of the page."""
    import guardrail_rates  # which imports this module

    parts = [
        *false_claims(),
        *power(),
        *rare_collapses(),
        "",
        *guardrail_rates.false_claims(),
        *guardrail_rates.power(),
    ]
    tables = "\n".join(parts)
    head, _, old_section = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = old_section.partition(END)[2]
    PAGE.write_text(f"{head}{BEGIN}{tables}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    write()
