"""The procedure of `esper-ab gate`, written anew from docs/gate.md and docs/internals/verdict-rules.md.

Nothing here comes from `esper_ab`. Many gates are judged at once; higher outcomes are better. Equal outcomes stand for
equal records. Not modelled: lost runs, outcomes that are all 0 or 1, guardrails, and an audit that blocks.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simulation.procedure import ALPHA, DRIFT_LEVEL, SIGNED, SMALL_LEAST, Bools, Floats, degenerate, signed

IDENTICAL_AFTER = 6  # pairs
FIRST_LOOK = {"not-worse": 20, "better": 14}
PATHS = 600_000  # normal experiments that calibrate the bounds
RNG_SEED = 67

Ints = NDArray[np.int64]


class Verdict(IntEnum):
    """What a gate answers."""

    INCONCLUSIVE = 0
    IDENTICAL = 1
    BETTER = 2
    NOT_WORSE = 3
    EQUIVALENT = 4
    WORSE_BELOW_MARGIN = 5
    WORSE = 6


PASSING = {
    "not-worse": (Verdict.IDENTICAL, Verdict.BETTER, Verdict.NOT_WORSE, Verdict.WORSE_BELOW_MARGIN),
    "better": (Verdict.BETTER,),
}


@dataclass(frozen=True)
class Plan:
    """A sealed plan of two groups. `adjusted`: the effect of device and start order is removed by least squares."""

    looks: tuple[int, ...]
    claim: str = "not-worse"
    adjusted: bool = True
    margin: float = 1.0


@dataclass
class Answers:
    """The verdict of each gate, and the pairs that it used."""

    verdicts: Ints
    pairs: Ints

    def passed(self, plan: Plan) -> Bools:
        """Whether the exit status is 0."""
        return np.isin(self.verdicts, PASSING[plan.claim])


def looks_of(pairs: int, claim: str = "not-worse") -> tuple[int, ...]:
    """After 20 pairs (14 for `better`), then after a quarter more each time, rounded as in rule 2; the last after all.

    A look that would come after more than nine tenths of them is left out.
    """
    looks, look = [], FIRST_LOOK[claim]
    while look <= 0.9 * pairs:
        looks.append(look)
        place = 1.25 * look
        look = 4 * round(place / 4) if place % 2 == 1 else 2 * round(place / 2)
    return (*looks, pairs)


def moments(differences: Floats, looks: tuple[int, ...], adjusted: bool) -> tuple[Floats, Floats, Ints]:
    """Return estimate and standard error at each look [looks, gates], and degrees of freedom [looks].

    Adjusted: head has the one position in even pairs and the other one in odd pairs, so the estimate is the mean of the
    two halves' means, and each half varies around its own.
    """
    halves = [differences[:, start::2] for start in (0, 1)] if adjusted else [differences]
    estimate, squares, variance_share = (np.zeros((len(looks), 1)) for _ in range(3))
    for start, half in enumerate(halves):
        counts = np.array([(look - start + 1) // 2 if adjusted else look for look in looks])[:, None]
        mean = np.cumsum(half, axis=1)[:, counts[:, 0] - 1].T / counts
        squares = squares + np.cumsum(half**2, axis=1)[:, counts[:, 0] - 1].T - counts * mean**2
        estimate = estimate + mean / len(halves)
        variance_share = variance_share + 1.0 / counts / len(halves) ** 2
    df = np.array(looks) - len(halves)
    return estimate, np.sqrt(np.maximum(squares, 0.0) / df[:, None] * variance_share), df


@cache
def bounds(looks: tuple[int, ...], adjusted: bool) -> tuple[Floats, Floats]:
    """Return the p required at each look: two-sided at 0, and one-sided at the margin."""
    root = np.sqrt(np.array(looks) / looks[-1])
    t, df = _null_paths(looks, adjusted)
    spent_on_two, spent_on_one = (
        sides * 2 * stats.norm.sf(stats.norm.isf(ALPHA / 2 / sides) / root) for sides in (2, 1)
    )
    return _calibrated(np.abs(t), df, spent_on_two, 2), _calibrated(t, df, spent_on_one, 1)


def _null_paths(looks: tuple[int, ...], adjusted: bool) -> tuple[Floats, Ints]:
    """Return t at each look [looks, paths] of normal differences without a mean."""
    rng = np.random.default_rng([RNG_SEED, *looks])
    halves = 2 if adjusted else 1
    total, squares, previous = np.zeros((halves, PATHS)), np.zeros((halves, PATHS)), np.zeros(halves, int)
    t = np.zeros((len(looks), PATHS))
    for k, look in enumerate(looks):
        counts = np.array([(look - start + halves - 1) // halves for start in range(halves)])
        for half, new in enumerate(counts - previous):
            step = rng.standard_normal(PATHS) * np.sqrt(new)
            total[half] += step
            squares[half] += step**2 / new + (rng.chisquare(new - 1, PATHS) if new > 1 else 0.0)
        column = counts[:, None]
        variance = (squares - total**2 / column).sum(axis=0) / (look - halves)
        t[k] = (total / column).mean(axis=0) / np.sqrt(variance * np.mean(1.0 / column) / halves)
        previous = counts
    return t, np.array(looks) - halves


def _calibrated(t: Floats, df: Ints, spent: Floats, sides: int) -> Floats:
    """Return bounds by which as many paths cross at or before each look as alpha is spent by then."""
    nominal, has_crossed = np.zeros(len(df)), np.zeros(t.shape[1], bool)
    for k, spent_alpha in enumerate(spent):
        crossings = max(round(spent_alpha * t.shape[1]) - int(has_crossed.sum()), 1)
        limit = np.partition(t[k, ~has_crossed], -crossings)[-crossings]
        nominal[k] = spent_alpha if k == 0 else sides * stats.t.sf(limit, df[k])
        has_crossed |= t[k] >= stats.t.isf(nominal[k] / sides, df[k])
    return nominal


def judge(head: Floats, base: Floats, plan: Plan, within_budget: Ints | None = None) -> Answers:
    """Judge outcomes [gates, pairs]. `within_budget`: the pairs that were complete when the minutes ended."""
    differences = head - base
    gates = len(differences)
    complete = np.full(gates, plan.looks[-1]) if within_budget is None else within_budget
    answers = Answers(np.zeros(gates, np.int64), np.minimum(complete, plan.looks[-1]))
    is_open = np.ones(gates, bool)
    _end(answers, is_open, (differences[:, :IDENTICAL_AFTER] == 0).all(axis=1), Verdict.IDENTICAL, IDENTICAL_AFTER)
    estimates, errors, dfs = moments(differences, plan.looks, plan.adjusted)
    two_sided, one_sided = bounds(plan.looks, plan.adjusted)
    for k, look in enumerate(plan.looks):
        taken = is_open & (complete >= look)
        taken[taken] &= ~degenerate(differences[taken, :look])
        with np.errstate(divide="ignore", invalid="ignore"):
            t, t_low, t_high = ((estimates[k] + shift) / errors[k] for shift in (0.0, plan.margin, -plan.margin))
        crossing = taken & (np.abs(t) >= stats.t.isf(two_sided[k] / 2, dfs[k]))
        if look in SIGNED:
            crossing = signed(crossing, _centred(differences[:, :look], plan), None, np.full(gates, ALPHA))
        limit = stats.t.isf(one_sided[k], dfs[k])
        within = (t_low >= limit) & (look >= SMALL_LEAST) & (plan.claim == "not-worse")
        _end(answers, is_open, crossing & (t > 0), Verdict.BETTER, look)
        _end(answers, is_open, crossing & (t < 0) & within, Verdict.WORSE_BELOW_MARGIN, look)
        _end(answers, is_open, crossing & (t < 0), Verdict.WORSE, look)
        _end(answers, is_open, taken & within, Verdict.NOT_WORSE, look)
        if plan.claim == "better" and look == plan.looks[-1] and look >= SMALL_LEAST:
            limit = stats.t.isf(two_sided[k], dfs[k])
            _end(answers, is_open, taken & (t_low >= limit) & (-t_high >= limit), Verdict.EQUIVALENT, look)
    _cap_drifts(answers, differences, plan)
    return answers


def _end(answers: Answers, is_open: Bools, ends: Bools, verdict: Verdict, pairs: int) -> None:
    ends = ends & is_open & (answers.pairs >= pairs)
    answers.verdicts[ends], answers.pairs[ends] = verdict, pairs
    is_open &= ~ends


def _centred(differences: Floats, plan: Plan) -> Floats:
    """Return differences [gates, pairs] without the estimated effect of the positions."""
    if not plan.adjusted:
        return differences
    effect = (differences[:, 0::2].mean(axis=1) - differences[:, 1::2].mean(axis=1))[:, None] / 2
    sides = 1 - 2 * (np.arange(differences.shape[1]) % 2)
    return np.asarray(differences - effect * sides)


def _cap_drifts(answers: Answers, differences: Floats, plan: Plan) -> None:
    """Make claims INCONCLUSIVE whose differences have a trend or a positive autocorrelation."""
    for look in plan.looks:
        claims = np.flatnonzero((answers.pairs == look) & (answers.verdicts > Verdict.IDENTICAL))
        if not len(claims):
            continue
        residuals = _centred(differences[claims, :look], plan)
        residuals = residuals - residuals.mean(axis=1)[:, None]
        x = np.arange(look) - (look - 1) / 2
        slope = residuals @ x / (x @ x)
        df = look - 2 - plan.adjusted
        squares = (residuals**2).sum(axis=1)
        error = np.sqrt(np.maximum(squares - slope**2 * (x @ x), 1e-300) / df / (x @ x))
        trend_p = 2 * stats.t.sf(np.abs(slope / error), df)
        r = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / squares
        deviation = (r + 1 / look) / np.sqrt((look - 2) ** 2 / (look**2 * (look - 1)))
        has_drift = (trend_p <= DRIFT_LEVEL) | (stats.norm.sf(deviation) <= DRIFT_LEVEL)
        answers.verdicts[claims[has_drift]] = Verdict.INCONCLUSIVE
