"""The tables of docs/evidence/rates.md on moderated variances, for scripts/moderated_rates."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from moderated_rates import ALPHA, EXPERIMENTS, RNG_SEED, ROOT, Law, Plan, false_not_worse, rate

from esper_ab.stats.distributions import t_isf
from esper_ab.stats.moderated_variance import moderated_variance
from esper_ab.stats.prior_df import MOST_PRIOR_DF

PAGE = ROOT / "docs" / "evidence" / "rates.md"
BEGIN = "<!-- moderated tables -->\n"
END = "<!-- /moderated tables -->"
SEEDS = (6, 10, 16, 20)
GROUPS = (3, 6)
CORRELATIONS = (0.0, 0.5)


def laws(correlation: float) -> dict[str, Law]:
    """Return the laws of runs by their names."""
    normal = Law(correlation=correlation)
    return {
        "normal": normal,
        "normal, one SD tripled": replace(normal, sds=(3.0, 1.0)),
        "normal, SDs 1/2, 1, 2 in turn": replace(normal, sds=(0.5, 1.0, 2.0, 0.5, 1.0, 2.0)),
        "learns or not": replace(normal, shape="learns or not"),
        "lognormal": replace(normal, shape="lognormal"),
        "t, 3 degrees of freedom": replace(normal, shape="t, 3 degrees of freedom"),
    }


def errors() -> Iterator[str]:
    """Yield the table of false claims."""
    yield from paragraph(
        f"**False claims, in percent of experiments, of own / moderated variances.** All pairs, all means equal, "
        f"default looks, early stops, alpha passed on; {EXPERIMENTS:,} experiments a cell, standard error 0.22 at 5 %. "
        'The sign-flip test from 11 pairs on, which can only remove claims, is left out but for "learns or not".'
    )
    yield from head(["law", "correlation", *(f"{g} groups, {n} seeds" for g in GROUPS for n in SEEDS)])
    for name in laws(0.0):
        for correlation in CORRELATIONS:
            law = laws(correlation)[name]
            cells = [both(Plan(groups, seeds), law) for groups in GROUPS for seeds in SEEDS]
            yield row([name, f"{correlation:g}", *cells])


def both(plan: Plan, law: Law) -> str:
    """Return "own / moderated"."""
    return f"{rate(replace(plan, prior=0), law):.1f} / {rate(plan, law):.1f}"


def powers() -> Iterator[str]:
    """Yield the table of power."""
    yield from paragraph(
        "**Power, in percent, of own / moderated variances**: how often one group, which is one SD of a run better, is "
        "found to be better than one other."
    )
    yield from head(["law", "correlation", *(f"{g} groups, {n} seeds" for g in GROUPS for n in SEEDS)])
    for name in laws(0.0):
        for correlation in CORRELATIONS:
            law = replace(laws(correlation)[name], up=1.0)
            cells = [both(Plan(groups, seeds), law) for groups in GROUPS for seeds in SEEDS]
            yield row([name, f"{correlation:g}", *cells])


WORST_LAWS = {
    "normal": Law(),
    "the control's, or first group's, SD tripled": Law(sds=(3.0, 1.0)),
    "the last group's SD tripled": Law(sds=(1.0,) * 2),
    "the last group's SD 100 times": Law(sds=(1.0,) * 2),
    "half of the groups: SD tripled": Law(sds=(1.0,) * 2),
    "learns or not": Law(shape="learns or not"),
}
RULES = {
    "own": {"prior": 0},
    "today's": {},
    f"always {MOST_PRIOR_DF}": {"prior": MOST_PRIOR_DF},
    f"always {MOST_PRIOR_DF}, location fitted": {"prior": MOST_PRIOR_DF, "location": "fit"},
}
WORST_PLANS = {
    "3 groups, control": Plan(3, 6, control=True),
    "4 groups, control": Plan(4, 6, control=True),
    "6 groups, control": Plan(6, 6, control=True),
    "12 groups, control": Plan(12, 6, control=True),
    "3 groups, all pairs": Plan(3, 6),
    "4 groups, all pairs": Plan(4, 6),
    "12 groups, all pairs": Plan(12, 6),
    "3 groups, all pairs, adjusted": Plan(3, 8, adjusted=True),
    "6 groups, all pairs, adjusted": Plan(6, 12, adjusted=True),
    "3 groups, all pairs, no early stop": Plan(3, 20, early_stop=False),
}


def law_of(name: str, groups: int) -> Law:
    """Return a law of WORST_LAWS for this number of groups."""
    if "100" in name:
        return Law(sds=(1.0,) * (groups - 1) + (100.0,))
    if name.startswith("the last"):
        return Law(sds=(1.0,) * (groups - 1) + (3.0,))
    if name.startswith("half"):
        return Law(sds=(1.0,) * (groups // 2) + (3.0,))
    return WORST_LAWS[name]


def rules() -> Iterator[str]:
    """Yield the table of rules for the prior."""
    yield from paragraph(
        "**Rules for the prior**: false claims, in percent, of the plans in which they differ most: 6 seeds, adjusted "
        "for device and order 8 and 12, and 20 without early stops. Today's prior has one degree of freedom less than "
        f"there are comparisons, and at most {MOST_PRIOR_DF}, at the mean of the variances. Cells: "
        f"{' / '.join(RULES)}."
    )
    yield from head(["plan", *WORST_LAWS])
    for name, plan in WORST_PLANS.items():
        cells = []
        for law_name in WORST_LAWS:
            law = law_of(law_name, plan.groups)
            cells.append(" / ".join(f"{rate(replace(plan, **rule), law):.1f}" for rule in RULES.values()))
        yield row([name, *cells])


CLAIM_LAWS = ("normal", "the control's, or first group's, SD tripled", "the last group's SD tripled", "learns or not")


def claims_of_not_worse() -> Iterator[str]:
    """Yield the table of false claims that a group is not worse."""
    yield from paragraph(
        "**False NOT WORSE, in percent, of own / moderated variances** (`--claim not-worse`): all groups are worse "
        "than the control by exactly the margin."
    )
    yield from head(["plan", *CLAIM_LAWS])
    for seeds in (20, 30):
        for groups in (3, 4, 6):
            plan = Plan(groups, seeds, control=True)
            laws_of_plan = [law_of(name, groups) for name in CLAIM_LAWS]
            cells = [
                f"{false_not_worse(replace(plan, prior=0), law):.1f} / {false_not_worse(plan, law):.1f}"
                for law in laws_of_plan
            ]
            yield row([f"{groups} groups, control, {seeds} seeds", *cells])


UNEQUAL = {
    "skewness 2; tight (SD 0.15)": Law(sds=(0.15,), last_shape="skewness 2"),
    "skewness 3.5; tight (SD 0.15)": Law(sds=(0.15,), last_shape="skewness 3.5"),
    "15 % x 20, SD 1; SD 1": Law(last_shape="15 % fall by 20"),
    "5 % x 50, SD 1; SD 1": Law(last_shape="5 % fall by 50"),
}


def unequal() -> Iterator[str]:
    """Yield the table of false claims between groups of unequal shape."""
    yield from paragraph(
        "**Groups of unequal shape**: false claims, in percent, of own / moderated variances, where the last group has "
        "the law before the semicolon and all others that after it. All means are equal."
    )
    plans = {f"{groups} groups, {seeds} seeds": Plan(groups, seeds) for groups in GROUPS for seeds in (6, 10, 15)}
    plans |= {f"6 groups, control, {seeds} seeds": Plan(6, seeds, control=True) for seeds in (6, 10, 15)}
    yield from head(["laws", *plans])
    for name, law in UNEQUAL.items():
        yield row([name, *(both(plan, law) for plan in plans.values())])


CALIBRATED_RUNS = 20
PRIORS = (0, 1, 2, 4, 8)
PATHS = 400_000


def calibrated() -> Iterator[str]:
    """Yield the table of two groups whose variance is shrunk to that of a calibration."""
    yield from paragraph(
        "**Two groups, and the SD of a calibration** (not built): the variance of the differences is shrunk to twice "
        f"the variance of {CALIBRATED_RUNS} runs of one group, which counts as that many prior degrees of freedom; one "
        "look. False claims in percent if the runs of the experiment have the SD of the calibration, twice that SD, or "
        f"if one group has three times that SD; power at 1 and 2 SDs of a run (correlation 0). {PATHS:,} experiments."
    )
    yield from head(
        ["pairs", "prior", "same SD", "twice the SD", "one group three times", "power, 1 SD", "power, 2 SD"]
    )
    rng = np.random.default_rng([RNG_SEED, 1])
    for pairs in SEEDS[:2]:
        normal = rng.standard_normal(PATHS)
        own = rng.chisquare(pairs - 1, PATHS) / (pairs - 1)
        calibration = rng.chisquare(CALIBRATED_RUNS - 1, PATHS) / (CALIBRATED_RUNS - 1)
        for prior in PRIORS:
            reach = t_isf(ALPHA / 2.0, pairs - 1 + prior)
            cells = []
            for assumed, effect in ((1.0, 0.0), (0.25, 0.0), (0.2, 0.0), (1.0, 1.0), (1.0, 2.0)):
                variance = moderated_variance(own, np.asarray(pairs - 1.0), assumed * calibration, prior)
                t = (normal + effect * math.sqrt(pairs / 2.0)) / np.sqrt(variance)
                found = t >= reach if effect else np.abs(t) >= reach
                cells.append(f"{100.0 * found.mean():.1f}")
            yield row([str(pairs), str(prior), *cells])


def paragraph(text: str) -> list[str]:
    """Return a paragraph and an empty line."""
    return ["", *textwrap.wrap(text, 120), ""]


def head(names: Sequence[str]) -> list[str]:
    """Return the head of a table."""
    return [row(names), row(["---"] * len(names))]


def row(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def write() -> None:
    """Write all tables between the marks of the page."""
    lines: list[str] = []
    for table in (errors, powers, rules, claims_of_not_worse, unequal, calibrated):
        for line in table():
            print(line, flush=True)
            lines.append(line)
    tables = "\n".join(lines).strip("\n")
    top, _, old_section = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    bottom = old_section.partition(END)[2]
    PAGE.write_text(f"{top}{BEGIN}{tables}\n{END}{bottom}", encoding="utf-8")
