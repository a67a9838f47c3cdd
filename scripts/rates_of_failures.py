"""What rare failures, lost runs, drifts and outcomes of 0 or 1 do to error rates: tables of docs/evidence/rates.md.

The rules are those of tests/simulation. Rates are in percent, and the margin is 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from rates_of_plans import MARGIN, NO_MARGIN, percent, planned, seeded
from simulation import counts, procedure
from simulation.laws import Floats, collapsing
from simulation.procedure import ALPHA, SMALL_LEAST, Losses, Rule, anytime, default_looks, drifts, follow, settle

EXPERIMENTS = 10_000
RARE = ((0.15, 20.0), (0.10, 25.0), (0.05, 45.0), (0.03, 80.0))  # share of collapses in one group, and their depth


def rare_collapses() -> Iterator[list[str]]:
    """A difference called small, where one group is worse by more than the margin, all of it in rare collapses."""
    yield ["plan", "from", *(f"{100 * share:g} % x {depth:g}" for share, depth in RARE)]
    rules = [(f"{pairs} pairs", "the last look", planned(pairs)) for pairs in (15, 20, 30)]
    rules.append(("30 pairs", "15 pairs", Rule(default_looks(30), small_from=SMALL_LEAST, paths=200_000)))
    rules += [("no maximum, to 100", f"{start} pairs", anytime(100, start)) for start in (15, 20, 25, 30)]
    for plan, start, rule in rules:
        row = [plan, start]
        for share, depth in RARE:
            rng = seeded("rare", share, depth)
            x, _ = collapsing(rng, (EXPERIMENTS, 2, rule.looks[-1]), 0.9, share, depth)
            state = follow((x[:, 0] - x[:, 1] - share * depth)[:, None], rule, MARGIN)
            row.append(percent(state.equivalent | state.below))
        yield row


@dataclass(frozen=True, kw_only=True)
class Lossy:
    """Groups A and B with lost runs: A's collapses crash, and runs are lost at random or by their outcome."""

    share: float = 0.0  # of A's runs that crash
    depth: float = 0.0
    sd: float = 1.0
    correlation: float = 0.0
    lower: float = 0.0  # how much lower A is
    lost_at_random: tuple[float, float] = (0.0, 0.0)
    worst_lost: float = 0.0  # share of A's worst runs
    declared_worst: float = -10.0

    def draw(self, rng: np.random.Generator, number: int, pairs: int) -> Losses:
        """Return the runs of as many experiments."""
        size = (number, 2, pairs)
        x, is_crash = collapsing(rng, size, self.correlation, self.share, self.depth / self.sd)
        x = x * self.sd
        is_lost = rng.random(size) < np.array(self.lost_at_random)[:, None]
        is_lost[:, 0] |= is_crash[:, 0]
        if self.worst_lost:
            is_lost[:, 0] |= x[:, 0] < np.quantile(x[:, 0], self.worst_lost)
        cancelled = rng.random((number, pairs)) < 0.5
        return Losses(x[:, 0] - self.lower, x[:, 1], is_lost[:, 0], is_lost[:, 1], cancelled)


BETTER = {
    "15 % x 20, SD 1.5, crash": Lossy(share=0.15, depth=20, sd=1.5, declared_worst=-20),
    "10 % x 40, correlation 0.9, crash": Lossy(share=0.1, depth=40, correlation=0.9, declared_worst=-40),
    "5 % x 50, correlation 0.9, crash": Lossy(share=0.05, depth=50, correlation=0.9, declared_worst=-50),
    "A loses 20 %, B 2 %, at random": Lossy(lost_at_random=(0.2, 0.02)),
    "both lose 5 % at random": Lossy(lost_at_random=(0.05, 0.05)),
    "A loses its worst 10 %": Lossy(worst_lost=0.1),
    "A loses its worst 30 %": Lossy(worst_lost=0.3),
}
SMALL = {
    "15 % x 20 crash, A 3 lower": Lossy(share=0.15, depth=20, correlation=0.9, lower=3, declared_worst=-20),
    "10 % x 30 crash, A 3 lower": Lossy(share=0.1, depth=30, correlation=0.9, lower=3, declared_worst=-30),
    "5 % x 50 crash, A 2.5 lower; B loses 5 %": Lossy(
        share=0.05, depth=50, correlation=0.9, lower=2.5, lost_at_random=(0, 0.05), declared_worst=-50
    ),
}


def lost_runs() -> Iterator[list[str]]:
    """False BETTER for a group that lost a run, by the observed pairs and as it is said, in percent of experiments."""
    yield ["law", "10 pairs, observed", "said", "20 pairs, observed", "said"]
    for name, law in BETTER.items():
        row = [name]
        for pairs in (10, 20):
            rule = planned(pairs)
            losses = law.draw(seeded("lost", name, pairs), EXPERIMENTS // 2, pairs)
            states = settle(losses, rule, MARGIN, law.declared_worst)
            has_lost = _lost_before_the_last_look(losses.failed_a, states[0], rule)
            row += [percent(state.crossed[has_lost, 0] > 0) for state in states]
        yield row


def _lost_before_the_last_look(failed: Floats, state: procedure.Outcome, rule: Rule) -> procedure.Bools:
    until = np.array(rule.looks)[state.look]
    return np.asarray((failed & (np.arange(rule.looks[-1]) < until)).any(1))


def small_with_losses() -> Iterator[list[str]]:
    """False EQUIVALENT, and false `A not-worse-than B`, of 20 pairs of which one was lost."""
    yield ["law", "EQUIVALENT, observed", "said", "not-worse-than, observed", "said"]
    for name, law in SMALL.items():
        rule = planned(20)
        losses = law.draw(seeded("small", name), EXPERIMENTS // 2, 20)
        states = settle(losses, rule, MARGIN, law.declared_worst)
        has_lost = _lost_before_the_last_look(losses.failed_a | losses.failed_b, states[0], rule)
        small = [percent((state.equivalent | state.below)[has_lost, 0]) for state in states]
        gates = [percent(state.not_worse(MARGIN)[0][has_lost, 0]) for state in states]
        yield [name, *small, *gates]


def price_of_losses() -> Iterator[list[str]]:
    """BETTER at an effect of 4 SDs of a run with 20 pairs, where runs are lost at random, by the declared worst."""
    worsts = (None, -5.0, -10.0, -20.0, -40.0)
    yield ["lost", "looks", "observed", *("none" if worst is None else f"{worst:g}" for worst in worsts)]
    for share in (0.02, 0.05):
        for rule in (planned(20), Rule((20,))):
            law = Lossy(lower=-4.0, lost_at_random=(share, share))
            losses = law.draw(seeded("price", share), EXPERIMENTS // 5, 20)
            settled = [settle(losses, rule, MARGIN, worst) for worst in worsts]
            said = [percent(state.crossed > 0, 0) for _, state in settled]
            looks = ", ".join(map(str, rule.looks))
            yield [f"{100 * share:g} %", looks, percent(settled[0][0].crossed > 0, 0), *said]


def drift() -> Iterator[list[str]]:
    """False claims where each group is a series over seeds, those that the check leaves, and how often it caps."""
    yield ["series", "looks", "false", "with the check", "capped"]
    for phi in (0.0, 0.3, 0.6, 0.9):
        for rule in (Rule((10,)), Rule((20,)), planned(20), planned(30)):
            x = autoregressive(seeded("drift", phi, rule.looks), (EXPERIMENTS, 2, rule.looks[-1]), phi)
            d = x[:, 0] - x[:, 1]
            state = follow(d[:, None], rule, NO_MARGIN)
            claims = state.crossed[:, 0] != 0
            capped = np.zeros(len(d), bool)
            for place, look in enumerate(rule.looks):
                ends = state.look[:, 0] == place
                capped[ends] = drifts(d[ends, :look])
            looks = ", ".join(map(str, rule.looks))
            yield [f"AR({phi:g})", looks, percent(claims), percent(claims & ~capped), percent(capped)]


def autoregressive(rng: np.random.Generator, size: tuple[int, ...], phi: float) -> Floats:
    """Return stationary series with SD 1 along the last axis."""
    x = rng.standard_normal(size)
    for place in range(1, size[-1]):
        x[..., place] = phi * x[..., place - 1] + np.sqrt(1.0 - phi**2) * x[..., place]
    return x


CHANCES = np.round(np.arange(0.05, 0.96, 0.05), 2)
MARGINS = (0.1, 0.2, 0.3, 0.4, 0.5)


def zero_or_one() -> Iterator[list[str]]:
    """Exact rates of pairs with outcomes of 0 or 1, and one look: false claims, coverage, and false EQUIVALENT."""
    yield ["pairs", "correlation", "false claim", "coverage, mean", "least", "EQUIVALENT", "by all pairs alone"]
    a, b = (x.ravel() for x in np.meshgrid(CHANCES, CHANCES))
    for pairs in (10, 15, 20, 30, 50):
        table = counts.tables(pairs)
        z = counts.z_of(np.array(ALPHA))
        low, high = counts.printed_interval(*table.T, z)
        claims = counts.claims(counts.mcnemar(table[:, 1], table[:, 2]), low, high, ALPHA)
        for phi in (0.0, 0.3, 0.6, None):
            cells = _one_sided(a, b) if phi is None else counts.joint(a, b, np.array(phi))
            is_valid = ~np.isnan(cells[:, 0])
            law = counts.chances(table, cells[is_valid])
            true = (a - b)[is_valid]
            covers = (low <= true[:, None] + 1e-12) & (true[:, None] <= high + 1e-12)
            coverage = (law * covers).sum(1)
            ways = ((low, high), counts.paired_interval(*table.T, z))
            false_small = [_false_small(law, true, claims, *interval) for interval in ways]
            yield [
                str(pairs),
                "the largest" if phi is None else f"{phi:g}",
                percent((law @ (claims != 0))[np.isclose(true, 0)].max()),
                percent(coverage),
                percent(coverage.min()),
                *(percent(np.array(rate)) if pairs >= SMALL_LEAST else "–" for rate in false_small),
            ]


def _one_sided(a: Floats, b: Floats) -> Floats:
    """Return the cells where the group with the smaller chance never succeeds alone."""
    both = np.minimum(a, b)
    return np.stack([both, a - both, b - both, 1.0 - np.maximum(a, b)], -1)


def _false_small(law: Floats, true: Floats, claims: Floats, low: Floats, high: Floats) -> float:
    """Return the largest chance of EQUIVALENT at a true difference of the margin."""
    rates = [0.0]
    for margin in MARGINS:
        is_small = (claims == 0) & (low > -margin) & (high < margin)
        rates += (law[np.isclose(np.abs(true), margin)] @ is_small).tolist()
    return max(rates)
