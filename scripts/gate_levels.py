"""How often a gate errs, alone and over a series of heads with one base, for docs/evidence/gates.md.

    scripts/gate_levels    simulate (minutes) and write the page

The procedure is tests/simulation/gates.py, which was written from the pages and takes nothing from `esper_ab`.
tests/scripts/test_gate_levels.py compares it with the package, gate by gate.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from simulation import gates, laws  # noqa: E402
from simulation.gates import Plan, Verdict  # noqa: E402
from simulation.procedure import ALPHA, Bools, Floats  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "gates.md"
GATES = 10_000
SERIES = 4_000
HEADS = 20
RNG_SEED = 67
PLANS = (20, 60)
CORRELATIONS = (0.0, 0.5, 0.9)
SDS = (1.0, 3.0)  # of runs, in margins
LAWS = (
    "normal",
    "lognormal",
    "4 % of runs collapse",
    "15 % of runs collapse",
    "learns or not",
    "success in 10 episodes",
)
RARE = {"15 %": 0.15, "10 %": 0.10, "5 %": 0.05, "3 %": 0.03}
SPREAD_PLANS = (20, 24, 30, 38, 48, 60)  # among which the spread of kept runs chooses
RUNS_IN_TIME = 48  # that the minutes of a gate pay for, if its pairs depend on the kept runs
KEPT = 20  # base runs of which that spread is known


@dataclass(frozen=True)
class Question:
    """What is true of head, in margins, and which answers would be false."""

    claim: str
    difference: float
    false: tuple[Verdict, ...]


PASSING = gates.PASSING["not-worse"]
QUESTIONS = {
    "passes at -margin": Question("not-worse", -1.0, PASSING),
    "BETTER at 0": Question("not-worse", 0.0, (Verdict.BETTER,)),
    "WORSE at 0": Question("not-worse", 0.0, (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)),
    "WORSE at +margin": Question("not-worse", 1.0, (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)),
    "`better`: any at 0": Question("better", 0.0, (Verdict.BETTER, Verdict.WORSE)),
    "EQUIVALENT at +margin": Question("better", 1.0, (Verdict.EQUIVALENT,)),
}


def runs(law: str, groups: int, pairs: int, correlation: float, key: list[int], number: int = GATES) -> Floats:
    """Return outcomes [gates, groups, pairs] with a mean of 0 and an SD of 1; base is the last group."""
    return laws.runs(law, laws.latent(np.random.default_rng([RNG_SEED, *key]), (number, groups, pairs), correlation))


def within_budget(x: Floats, slower: float, key: list[int]) -> NDArray[np.int64]:
    """Return how many pairs [gates, 2, pairs] end in time, if a pair takes as long as its slower run.

    Half of the gates end before 80 % of their pairs. A run takes exp(`slower` x outcome) times as long.
    """
    rng = np.random.default_rng([RNG_SEED, 5, *key])
    speed = np.exp(0.4 * rng.standard_normal((len(x), 1, 1)) + 0.2 * rng.standard_normal(x.shape))  # machine and run
    seconds = np.cumsum((speed * np.exp(slower * x)).max(axis=1), axis=1)
    return np.asarray((seconds <= np.median(seconds[:, int(0.8 * x.shape[2]) - 1])).sum(axis=1))


def false_rates(question: Question, law: str, slower: float | None, key: list[int]) -> tuple[float, float]:
    """Return the worst rate of false answers over plans, correlations and SDs, and its standard error."""
    worst = (0.0, 0.0)
    for code, (pairs, correlation, sd) in enumerate((p, c, s) for p in PLANS for c in CORRELATIONS for s in SDS):
        for number in (GATES, 5 * GATES):
            x = runs(law, 2, pairs, correlation, [1, *key, code, number], number) * sd
            complete = None if slower is None else within_budget(x / sd, slower, [*key, code])
            plan = Plan(gates.looks_of(pairs, question.claim), question.claim)
            answers = gates.judge(x[:, 0] + question.difference, x[:, 1], plan, complete)
            rate, error = rate_of(np.isin(answers.verdicts, question.false))
            if rate <= ALPHA + 2 * error:
                break
        worst = max(worst, (rate, error))
    return worst


def rate_of(events: Bools) -> tuple[float, float]:
    """Return the mean of events and its standard error."""
    mean = float(events.mean())
    return mean, float(np.sqrt(mean * (1 - mean) / len(events)))


def table(heads: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield a table in Markdown."""
    for row in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(row)} |"
    yield ""


def paragraph(text: str) -> Iterator[str]:
    """Yield lines of text, with an empty one after them."""
    yield from textwrap.wrap(text, 120, break_on_hyphens=False)
    yield ""


def single_gates() -> Iterator[str]:
    """Yield the table of false answers of one gate."""
    yield "## One gate"
    yield ""
    yield from paragraph(
        "How often a gate gives a false answer, in percent: the worst of plans of at most 20 and 60 pairs, of "
        "correlations 0, 0.5 and 0.9 within pairs, and of an SD of runs of 1 and 3 margins. Head and base have one "
        "law; *at* is the true difference. The first four are gates with `not-worse`, the last two with `better` "
        "(*any*: BETTER or WORSE). 10,000 gates a cell (a standard error of 0.22 at 5 %), and five times as many, "
        "anew, where a rate is two standard errors above 5 (0.10). The last rows: the minutes of half of the gates end "
        "before 80 % of their pairs; runs with better outcomes take as long, longer or less."
    )
    cases: dict[str, tuple[str, float | None]] = {law: (law, None) for law in LAWS}
    for words, slower in (("as long", 0.0), ("longer", 0.3), ("less", -0.3)):
        cases[f"normal, minutes end, {words}"] = ("normal", slower)
    rows = []
    for number, (words, (law, slowness)) in enumerate(cases.items()):
        rates = [false_rates(asked, law, slowness, [number, place]) for place, asked in enumerate(QUESTIONS.values())]
        rows.append([words, *(f"{100 * rate:.2f}" for rate, _ in rates)])
    yield from table(["law", *QUESTIONS], rows)


def rare_failures() -> Iterator[str]:
    """Yield the table of heads that do as base, but for rare failures."""
    yield "## A head that only fails now and then"
    yield ""
    yield from paragraph(
        "Some runs of head fail; on average it is worse by exactly the margin. *To the bit*: its other runs equal "
        "those of base, so the gate may end after 6 pairs as IDENTICAL. *Else*: they are like them (SD 1 margin, "
        "correlation 0.9). How often such a head passes `not-worse`, in percent. This is no error of the looks: no "
        "test of a mean sees failures that struck no run."
    )
    rows = []
    for number, (words, share) in enumerate(RARE.items()):
        row = [words]
        for pairs in PLANS:
            x = runs("normal", 2, pairs, 0.9, [2, number, pairs])
            fails = np.random.default_rng([RNG_SEED, 3, number, pairs]).random(x[:, 0].shape) < share
            for others in (1, 0):  # the member of the pair that head does as, where it does not fail
                answers = gates.judge(x[:, others] - fails / share, x[:, 1], Plan(gates.looks_of(pairs)))
                row += [f"{100 * np.isin(answers.verdicts, PASSING).mean():.0f}"]
                if others:
                    row[-1] += f" (IDENTICAL {100 * (answers.verdicts == Verdict.IDENTICAL).mean():.0f})"
        rows.append(row)
    heads = [f"{words}, {pairs} pairs" for pairs in PLANS for words in ("to the bit", "else")]
    yield from table(["runs that fail", *heads], rows)


def series(number: int, *, kept: bool, alike: float, plan: Plan | None, difference: float) -> Bools:
    """Return which heads [series, heads] pass. `kept`: one base for all; `alike`: the correlation of the heads' runs.

    Without a plan, the pairs are those that 95 % power takes by the spread of the kept runs.
    """
    pairs = SPREAD_PLANS[-1] if plan is None else plan.looks[-1]
    sd = 1.0 if plan is None else 3.0 / np.sqrt(2.0)
    rng = np.random.default_rng([RNG_SEED, 4, number])
    heads = laws.latent(rng, (SERIES, HEADS, pairs), alike) * sd + difference
    base = rng.standard_normal((SERIES, 1 if kept else HEADS, pairs)) * sd
    if plan is not None:
        return judged(heads, base, plan)
    passes = np.zeros((SERIES, HEADS), bool)
    spread = base[:, 0, :KEPT].std(axis=1, ddof=1) * np.sqrt(2.0)
    needed = np.clip((1.65 + 2.0) ** 2 * spread**2, SPREAD_PLANS[0], SPREAD_PLANS[-1])
    chosen = np.searchsorted(SPREAD_PLANS, needed)
    for place, most in enumerate(SPREAD_PLANS):
        rows = chosen == place
        if rows.any():
            passes[rows] = judged(heads[rows, :, :most], base[rows, :, :most], Plan(gates.looks_of(most)))
    return passes


def judged(heads: Floats, base: Floats, plan: Plan) -> Bools:
    """Return which heads [series, heads] pass."""
    flat = [np.broadcast_to(x, heads.shape).reshape(-1, heads.shape[2]) for x in (heads, base)]
    return gates.judge(flat[0], flat[1], plan).passed(plan).reshape(heads.shape[:2])


def series_by_minutes() -> Bools:
    """Return which heads [series, heads] pass if every gate may train so many runs, and base's are kept.

    So a gate has more pairs the longer the gates before went on, which depends on base's luck. Every head is worse by
    the margin. Numbers of pairs are multiples of 6, so that there are few plans.
    """
    rng = np.random.default_rng([RNG_SEED, 6])
    base = rng.standard_normal((SERIES, RUNS_IN_TIME)) * 3.0 / np.sqrt(2.0)
    kept, passes = np.zeros(SERIES, np.int64), np.zeros((SERIES, HEADS), bool)
    for number in range(HEADS):
        head = rng.standard_normal(base.shape) * 3.0 / np.sqrt(2.0) - 1.0
        most = np.minimum((RUNS_IN_TIME + kept) // 2, RUNS_IN_TIME) // 6 * 6
        for pairs in np.unique(most):
            rows, plan = most == pairs, Plan(gates.looks_of(int(pairs)))
            answers = gates.judge(head[rows, :pairs], base[rows, :pairs], plan)
            passes[rows, number] = answers.passed(plan)
            kept[rows] = np.maximum(kept[rows], answers.pairs)
    return passes


def many_gates() -> Iterator[str]:
    """Yield the table of series."""
    yield "## Many heads, one base"
    yield ""
    yield from paragraph(
        f"{HEADS} heads are judged one after the other ({SERIES:,} such series; SD of differences 3 margins, at most "
        "60 pairs, normal). Wrong: a head that is worse by the margin passes, a head that equals base passes `better`, "
        "or does not pass `not-worse`. With kept runs, all are compared with the same runs of base on the same seeds, "
        "so they share its luck: the rate per gate stays, but wrong answers come together. *Next*: how often an answer "
        "is wrong if the one before was. *Alike*: the runs of heads on one seed correlate by 0.9 with each other, and "
        "not with base's. *By spread*: runs have an SD of 1 margin, and the number of pairs, at most 60, is chosen by "
        f"the SD of the first {KEPT} kept runs of base, which are then also judged. *By minutes*: each gate may train "
        f"{RUNS_IN_TIME} runs, so the number of its pairs grows with the runs of base that earlier gates have kept. In "
        "percent, with the standard error of the rate."
    )
    fixed, better = Plan(gates.looks_of(60)), Plan(gates.looks_of(60, "better"), "better")
    cases: dict[str, tuple[bool, float, Plan | None, float]] = {
        "worse by the margin, base trained anew": (False, 0.0, fixed, -1.0),
        "worse by the margin, base kept": (True, 0.0, fixed, -1.0),
        "worse by the margin, base kept, heads alike": (True, 0.9, fixed, -1.0),
        "worse by the margin, base kept, by spread": (True, 0.0, None, -1.0),
        "equal, base trained anew": (False, 0.0, fixed, 0.0),
        "equal, base kept": (True, 0.0, fixed, 0.0),
        "`better`, equal, base trained anew": (False, 0.0, better, 0.0),
        "`better`, equal, base kept": (True, 0.0, better, 0.0),
        "`better`, equal, base kept, heads alike": (True, 0.9, better, 0.0),
    }
    answers = {"worse by the margin, base kept, by minutes": series_by_minutes()}
    for number, (words, (kept, alike, plan, difference)) in enumerate(cases.items()):
        passes = series(number, kept=kept, alike=alike, plan=plan, difference=difference)
        answers[words] = ~passes if plan is fixed and difference == 0.0 else passes
    rows = []
    for words, wrong in answers.items():
        counts = wrong.sum(axis=1)
        error = 100 * (counts / HEADS).std() / np.sqrt(SERIES)
        later = 100 * wrong[:, 1:][wrong[:, :-1]].mean()
        shares = [f"{100 * (counts >= least).mean():.{digits}f}" for least, digits in ((1, 0), (5, 1), (HEADS, 2))]
        rows.append([words, f"{100 * wrong.mean():.2f} ± {error:.2f}", f"{later:.0f}", *shares])
    yield from table(["heads", "wrong", "next", "any of 20", "5 or more", "all 20"], rows)


def main() -> None:
    """Write the page."""
    lines = ["# Gates: how often they err", "", "This page was written by `scripts/gate_levels`.", ""]
    lines += paragraph(
        "The procedure is that of [gate.md](../gate.md) and [verdict-rules.md](../internals/verdict-rules.md), written "
        "anew from these pages (`tests/simulation/gates.py`) with bounds of its own; the test of the script compares "
        "it with the package. Differences are adjusted for device and start order, as for your own code. Lost runs are "
        "not simulated."
    )
    for part in (single_gates, rare_failures, many_gates):
        lines += part()
    PAGE.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
