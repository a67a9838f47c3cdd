"""The error rates and the power of guardrails, for docs/evidence/rates.md; `scripts/claim_rates` runs it, too.

As in claim_rates, the rule is written anew: each guardrail is a one-sided test at its margin, at the bounds of BETTER,
in a fixed sequence after it; an interim look that shows BETTER waits until all guardrails hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from claim_rates import EXPERIMENTS, PATHS, RNG_SEED, moments, paragraph, table
from scipy import stats
from simulation import laws
from simulation.procedure import ALPHA, Bools, Floats, Rule

PLANS = {15: (15,), 20: (20,), 30: (20, 30)}
GUARDRAILS = 3
LAWS = ("normal", "lognormal", "learns or not")


@dataclass
class Answers:
    """What is said about each comparison."""

    better: Bools  # [experiments, comparisons]
    worse: Bools
    holds: Bools  # [guardrails, experiments, comparisons]
    pairs: Floats  # used


def answer(outcome: Floats, guardrails: Floats, looks: tuple[int, ...]) -> Answers:
    """Take all looks at differences in favour of the first group; a guardrail's margin is 1.

    `outcome` is [experiments, comparisons, pairs], `guardrails` [guardrails, experiments, comparisons, pairs].
    """
    comparisons = outcome.shape[1]
    share = ALPHA / comparisons
    rule = Rule(looks, paths=PATHS)
    t = _t(outcome, looks, 0.0)
    at_margin = [_t(guarded, looks, 1.0) for guarded in guardrails]
    is_open = np.ones(outcome.shape[:2], dtype=bool)
    answers = Answers(~is_open, ~is_open, np.zeros(guardrails.shape[:3], dtype=bool), np.full(is_open.shape, looks[-1]))
    for place, look in enumerate(looks):
        alpha = np.array([share])
        nominal = share if len(looks) == 1 else float(rule.nominal(place, alpha)[0])
        reach = stats.t.isf(nominal / 2.0, look - 1)
        passes = np.array([of_one[place] >= reach for of_one in at_margin])
        better = is_open & (t[place] >= reach)
        if place < len(looks) - 1:
            better &= passes.all(axis=0)
        worse = is_open & (t[place] <= -reach)
        answers.holds |= better & np.logical_and.accumulate(passes, axis=0)
        answers.better |= better
        answers.worse |= worse
        answers.pairs = np.where(better | worse, look, answers.pairs)
        is_open &= ~(better | worse)
    return answers


def _t(differences: Floats, looks: tuple[int, ...], shift: float) -> Floats:
    mean, error = moments(differences, looks)
    return np.asarray((mean + shift) / error)


def _drawn(law: str, groups: int, pairs: int, correlation: float, number: int) -> tuple[Floats, Floats]:
    """Return differences of the outcome and of the guarded measures; `correlation` is that between them in a run."""
    rng = np.random.default_rng([RNG_SEED, 5, number])
    shared = rng.standard_normal((EXPERIMENTS, groups, pairs))
    measures = []
    for _ in range(1 + GUARDRAILS):
        own = rng.standard_normal((EXPERIMENTS, groups, pairs))
        values = laws.runs(law, np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own)
        measures.append(values[:, :-1] - values[:, -1:])
    return measures[0], np.array(measures[1:])


def false_claims() -> Iterator[str]:
    """Yield the table of false claims."""
    yield from paragraph(
        "**False claims with three guardrails**: BETTER, WORSE, or a guardrail that is said to hold although the group "
        "is worse by exactly its margin, in percent; the worst of 15, 20 and 30 seeds (looks after 20, 30), and of "
        'correlations 0, 0.5 and 1 between the measures of a run; SD 1 margin. "All": all three guardrails are at '
        'their margin; "second": the first is equal, the others are at their margin. The outcome is better by 1.5 SD '
        "(BETTER is true), by 0.1 SD, or equal. 20,000 experiments a cell, and five times as many, anew, where a rate "
        "is two standard errors above 5."
    )
    rows = []
    for number, law in enumerate(LAWS):
        cells = []
        for groups in (2, 6):
            for first_margin, effect in ((0, 1.5), (1, 1.5), (0, 0.1), (0, 0.0)):
                cells.append(f"{100.0 * _worst(law, groups, first_margin, effect, number):.2f}")
        rows.append([law, *cells])
    cases = ["all, 1.5 SD", "second, 1.5 SD", "all, 0.1 SD", "all, equal"]
    yield from table(["law", *(f"{case}, 2 groups" for case in cases), *(f"{case}, 6 groups" for case in cases)], rows)
    yield ""


def _worst(law: str, groups: int, first_margin: int, effect: float, number: int) -> float:
    rates = []
    for seeds, looks in PLANS.items():
        for correlation in (0.0, 0.5, 1.0):
            code = 1000 * number + 100 * groups + seeds + round(10 * correlation) * 100_000
            cell = law, groups, correlation, first_margin, effect
            rate = _false(cell, looks, code)
            if rate > ALPHA + 2.0 * np.sqrt(ALPHA * (1.0 - ALPHA) / EXPERIMENTS):
                rate = float(np.mean([_false(cell, looks, code + again * 10_000_000) for again in range(1, 6)]))
            rates.append(rate)
    return max(rates)


def _false(cell: tuple[str, int, float, int, float], looks: tuple[int, ...], code: int) -> float:
    law, groups, correlation, first_margin, effect = cell
    outcome, guardrails = _drawn(law, groups, looks[-1], correlation, code)
    guardrails[first_margin:] -= 1.0
    answers = answer(outcome + effect, guardrails, looks)
    is_false = answers.worse | answers.holds[first_margin:].any(axis=0)
    if effect == 0.0:
        is_false |= answers.better
    return float(is_false.any(axis=1).mean())


def power() -> Iterator[str]:
    """Yield the table of how often BETTER and all guardrails are shown."""
    yield from paragraph(
        "**Power of guardrails**: how often BETTER is said, and all guardrails hold, of a group that is better by 2 SD "
        "of a run and equal in every guarded measure, by the SD of their differences in margins (two groups, normal, "
        "measures that do not correlate), and the mean number of pairs."
    )
    rows = []
    for seeds, looks in PLANS.items():
        for sd in (0.5, 1.0, 1.5, 2.0):
            outcome, guardrails = _drawn("normal", 2, seeds, 0.0, 7)
            cells = []
            for count in (1, 3):
                answers = answer(outcome + 2.0, guardrails[:count] * sd / np.sqrt(2.0), looks)
                everything = answers.better & answers.holds.all(axis=0)
                cells += [f"{100.0 * everything.mean():.0f}", f"{answers.pairs.mean():.1f}"]
            rows.append([str(seeds), f"{sd:g}", f"{100.0 * answers.better.mean():.0f}", *cells])
    yield from table(["seeds", "SD", "BETTER", "one guardrail", "pairs", "three", "pairs"], rows)
