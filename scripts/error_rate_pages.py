"""The tables of docs/evidence/rates.md on groups of unequal shape, for scripts/error_rates --pages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

import numpy as np
from error_rates import RNG_SEED, ROOT, Law, collapsing, skewed, t_values
from scipy import stats
from simulation.laws import Bools, Floats
from simulation.procedure import ALPHA, Rule, signed

from esper_ab.stats.error_rates import LookPlan, far_tail, rate_of_skewness, rate_of_tail
from esper_ab.verdict.shapes import SAID_FROM

PAGE = ROOT / "docs" / "evidence" / "rates.md"
BEGIN = "<!-- shapes tables -->\n"
END = "<!-- /shapes tables -->"
EXPERIMENTS = 20_000
PATHS = 400_000
LAWS: dict[str, Law] = {
    "skewness 2": skewed(2.0),
    "skewness 3.5": skewed(3.5),
    "skewness 6": skewed(6.0),
    "15 % fall by 45 SD": collapsing(0.15, 45.0),
    "5 % fall by 110 SD": collapsing(0.05, 110.0),
    "2 % fall by 130 SD": collapsing(0.02, 130.0),
    "15 % fall by 4 SD": collapsing(0.15, 4.0),
}
PLANS = {
    "10": (10,),
    "15": (15,),
    "16": (12, 16),
    "16 today": (14, 16),
    "20": (10, 14, 20),
    "20 today": (14, 20),
    "24": (12, 16, 24),
    "24 today": (16, 24),
    "30": (16, 20, 30),
}
STRICTER = 100.0  # the bound after 10 of 20 pairs is divided by this in one row
TASKS = (1, 2, 4, 8)
COUNTED_CLAIMS = 1_000  # false claims of which the sentence is counted


def write() -> None:
    """Write all tables between the marks of the page."""
    head, _, old_section = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = old_section.partition(END)[2]
    tables = "\n".join([*_looks(), *_tasks(), *_true_effects(), *_bimodal()])
    PAGE.write_text(f"{head}{BEGIN}{tables}\n{END}{tail}", encoding="utf-8")


def _drawn(law: Law, pairs: int, number: int) -> Floats:
    return law(np.random.default_rng([RNG_SEED, 1, number]), (EXPERIMENTS, pairs))


def _claims(t: Floats, rule: Rule, share: float = ALPHA, first_divisor: float = 1.0) -> tuple[Bools, Floats]:
    """Return whether each look [looks, experiments] claims a difference, and the pairs [experiments] used."""
    nominal_p = [float(rule.nominal(k, np.array(share))) for k in range(len(rule.looks))]
    nominal_p[0] /= first_divisor
    n = np.array(rule.looks)
    reach = stats.t.isf(np.array(nominal_p) / 2, n - 1)
    claims = np.abs(t[n - 1]) >= reach[:, None]
    used_pairs = np.where(claims.any(0), n[np.argmax(claims, 0)], n[-1])
    return claims, used_pairs


def _looks() -> Iterable[str]:
    names = ("skewness 3.5", "15 % fall by 45 SD", "5 % fall by 110 SD", "2 % fall by 130 SD")
    yield _paragraph(
        "**Looks between groups of unequal shape**: false claims, all means equal, by the law of the differences, and "
        "the price: power and mean pairs at a difference of one SD of a run, by the correlation within pairs. The row "
        f'"stricter" divides the bound after 10 pairs by {STRICTER:.0f}.',
        separator="",
    )
    yield from _head(["pairs", "looks", *names, "power, 0", "pairs, 0", "power, 0.5", "pairs, 0.5"])
    rows = [*((name, looks, 1.0) for name, looks in PLANS.items()), ("20 stricter", (10, 14, 20), STRICTER)]
    drawn_t = [t_values(_drawn(LAWS[name], 30, number)) for number, name in enumerate(names)]
    normal_differences = _drawn(skewed(0.0), 30, 9)
    price = [t_values(normal_differences + effect) for effect in (0.5**0.5, 1.0)]
    for name, looks, first_divisor in rows:
        rule = Rule(looks, paths=PATHS)
        false_rates = [100 * _claims(t, rule, first_divisor=first_divisor)[0].any(0).mean() for t in drawn_t]
        claims_and_pairs = [_claims(t, rule, first_divisor=first_divisor) for t in price]
        cost = [
            percentage
            for claims, used_pairs in claims_and_pairs
            for percentage in (100 * claims.any(0).mean(), used_pairs.mean())
        ]
        yield _row([name, ", ".join(map(str, looks)), *(f"{percentage:.1f}" for percentage in (*false_rates, *cost))])


def _tasks() -> Iterable[str]:
    yield _paragraph(
        "**Several tasks, in each of which one group has that shape and the other is tight**: any false claim, with "
        "alpha shared by the tasks and their mean."
    )
    names = ("skewness 2", "15 % fall by 45 SD")
    yield from _head(["law", "looks after", *(f"{count} task{'s' if count > 1 else ''}" for count in TASKS)])
    for number, name in enumerate(names):
        for looks in ((10,), (20,), (14, 20)):
            rule = Rule(looks, paths=PATHS)
            rates = []
            for count in TASKS:
                rng = np.random.default_rng([RNG_SEED, 2, number])
                share = ALPHA / (count + 1 if count > 1 else 1)
                d = np.stack([LAWS[name](rng, (EXPERIMENTS // 2, looks[-1])) for _ in range(count)])
                whole = [*d, d.mean(0)] if count > 1 else d
                any_claim = np.any([_claims(t_values(values), rule, share)[0].any(0) for values in whole], axis=0)
                rates.append(f"{100 * any_claim.mean():.1f}")
            yield _row([name, ", ".join(map(str, looks)), *rates])


def _true_effects() -> Iterable[str]:
    yield _paragraph(
        "**What stands beside a claim**: the true rate of false claims; of those in favour of the skewed or "
        "collapsing group, the share beside which an error rate of 8 % or more is said, and the median of what is said "
        "there. The last rows are true claims, at a difference of one SD of a difference, of groups of one shape. A "
        "collapse that struck no run cannot be seen in the data: beside all these claims stands that its effect is "
        "unknown, unless a worst outcome is declared."
    )
    yield from _head(["law of the differences", "pairs", "rate", "said beside", "median said"])
    effect_laws = {"normal": lambda z: z, "lognormal": np.exp, "learns or not": lambda z: 10.0 * (z > 0) + 0.3 * z}
    for number, (name, law) in enumerate(LAWS.items()):
        for looks in ((10,), (14, 20)):
            yield _row([name, str(looks[-1]), *_rates_of_sentences(_drawn(law, looks[-1], number), looks)])
    for name, effects in effect_laws.items():
        for looks in ((10,), (14, 20)):
            z = np.random.default_rng([RNG_SEED, 3]).standard_normal((2, EXPERIMENTS, looks[-1]))
            d = effects(z[0]) - effects(z[1])
            yield _row([f"{name}, true", str(looks[-1]), "–", *_rates_of_sentences(d + d.std(), looks)[1:]])


def _rates_of_sentences(d: Floats, looks: Sequence[int]) -> list[str]:
    rule = Rule(tuple(looks), paths=PATHS)
    t = t_values(d)
    claims, used_pairs = _claims(t, rule)
    claimed_better = claims.any(0) & (t[used_pairs - 1, np.arange(len(d))] > 0.0)
    plan = LookPlan(looks="one look" if len(looks) == 1 else "several looks", first=looks[0], comparisons=1)
    rates = []
    for index in np.flatnonzero(claimed_better)[:COUNTED_CLAIMS]:
        differences = d[index, : used_pairs[index]]
        tail = far_tail(differences)
        threatens = tail is not None and tail.least_mean <= 0.0
        rate = rate_of_tail(tail, plan) if tail and threatens else rate_of_skewness(differences, plan)
        rates.append(rate or 0.0)
    stated_rates = [rate for rate in rates if rate >= SAID_FROM]
    median = f"{100 * float(np.median(stated_rates)):.0f}" if stated_rates else "–"
    return [f"{100 * claims.any(0).mean():.1f}", f"{100 * len(stated_rates) / len(rates):.0f}", median]


def _bimodal() -> Iterable[str]:
    yield _paragraph(
        "**Each run learns or does not** (half of them; differences of 80, spread 1): false claims of the t alone and "
        'of the rule, which with 7, 8 or 11 to 20 pairs also needs the sign-flip test. "One of each pair": exactly '
        "one run of a pair learns; otherwise the runs' correlation is -0.9 or 0. Power of the rule (of the t alone), "
        "at normal differences of one and two SDs."
    )
    yield from _head(["pairs", "one of each pair", "rule", "-0.9", "rule", "0", "rule", "power, 1 SD", "2 SD"])
    for pairs in (6, 7, 8, 9, 10, 11, 13, 14, 16, 19):
        rng = np.random.default_rng([RNG_SEED, 4, pairs])
        cells = []
        for opposite_share in (1.0, 0.95, 0.5):
            first_signs = rng.random((EXPERIMENTS, pairs)) < 0.5
            second_signs = np.where(rng.random(first_signs.shape) < opposite_share, ~first_signs, first_signs)
            d = 80.0 * (first_signs * 1.0 - second_signs) + rng.standard_normal(first_signs.shape)
            cells += [f"{100 * percentage:.1f}" for percentage in _with_signs(d)]
        for effect in (1.0, 2.0):
            rate_without_signs, rate_with_signs = _with_signs(effect + rng.standard_normal((EXPERIMENTS, pairs)))
            cells.append(f"{100 * rate_with_signs:.0f} ({100 * rate_without_signs:.0f})")
        yield _row([str(pairs), *cells])


def _with_signs(d: Floats) -> tuple[float, float]:
    """Return the share of experiments d [experiments, pairs] that the t claims, and that the rule claims."""
    pairs = d.shape[1]
    claims = np.abs(t_values(d)[-1]) >= stats.t.isf(ALPHA / 2, pairs - 1)
    is_median = np.abs(d - np.median(d, 1)[:, None]) < 1e-9
    claims &= ~is_median.all(1)
    return float(claims.mean()), float(signed(claims, d, None, np.array(ALPHA)).mean())


def _paragraph(text: str, separator: str = "\n") -> str:
    return f"{separator}{textwrap.fill(text, 120)}\n"


def _head(cells: Sequence[str]) -> list[str]:
    return [_row(cells), _row(["---"] * len(cells))]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
