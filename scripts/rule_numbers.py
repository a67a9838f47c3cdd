"""The numbers of docs/internals/verdict-rules.md that no page of evidence has.

    .venv/bin/python scripts/rule_numbers.py

computes them (half a minute), and prints each with the words in which the page must have it; the exit status is 1 if
one is missing. tests/scripts/test_rule_numbers.py does the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from esper_ab.design.bounds import find_bounds
from esper_ab.design.power import assumed, power_tables_of
from esper_ab.design.scheme import PowerQuestion, generator_of
from esper_ab.stats.descriptive.improvement_interval import improvement_interval
from esper_ab.stats.least_pairs import unseen_rate
from esper_ab.stats.prior_df import prior_df

Floats = NDArray[np.float64]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "internals" / "verdict-rules.md"
ALPHA = 0.05
_EXPERIMENTS = 20_000
_AT_ONCE = 1_000
_MEANS = (0.8, 1.0)  # of normal differences, in SDs


def expected_words() -> Iterator[str]:
    """Yield the words around each number."""
    yield from _unseen_words()
    yield from _bound_words()
    yield from _two_value_words()
    yield from _sign_flip_words()
    yield (
        f"At full α/m for each guardrail all of this would err in up to {full_alpha_rate():.2f} α, where outcome and "
        "measure correlate perfectly"
    )
    yield f"that says {100 * power_of_six_groups():.0f} % where simulation finds 13"
    yield f"it covers {100 * least_coverage():.0f} % at the least"


def _unseen_words() -> Iterator[str]:
    six, fifteen = (100 * 0.85**pairs for pairs in (6, 15))
    yield f"unseen in 0.85^R of experiments, {six:.0f} % at 6 pairs and {fifteen:.0f} % at 15"
    yield f"({100 * unseen_rate(6):.0f} % with 6, {100 * unseen_rate(20):.0f} % with 20)"


def _bound_words() -> Iterator[str]:
    ((first_p, last_p),) = find_bounds(tuple((0, 1) for _ in range(20)), 1, (14, 20), (ALPHA,))
    yield f"p ≤ {first_p:.4f}, {last_p:.4f} at 14, 20"


def _two_value_words() -> Iterator[str]:
    """Yield the words on the t test alone, where exactly one run of each pair learns."""
    rates = {pairs: 100 * one_learns(pairs, 1) for pairs in range(6, 41)}
    seven, *others, last = (f"{rates[pairs]:.1f} % with {pairs}" for pairs in (7, 8, 11, 13, 14, 16, 19))
    seven = seven.replace("with 7", "of experiments with 7 pairs")
    yield f"the t alone claims in {', '.join((seven, *others))} and {last}"
    yield f"With 9 and 10 pairs the t keeps 5 % ({rates[9]:.1f} and {rates[10]:.1f} %)"
    yield f"err in {100 * one_learns(9, 2):.1f} % together, three in {100 * one_learns(9, 3):.1f} %"
    named = (24, 26, 29, 31, 34, 36)
    listed_rates = ", ".join(f"{pairs}: {rates[pairs]:.1f}" for pairs in named)
    least_named = max(rates[pairs] for pairs in range(22, 41) if pairs not in named)
    yield f"up to {rates[21]:.1f} % (21 pairs; {listed_rates}; other numbers to 40 at most {least_named:.1f})"


def one_learns(pairs: int, comparisons: int) -> float:
    """Return the exact rate of any false claim of comparisons that share alpha; all differences have one size."""
    wins = np.arange(pairs + 1)
    mean = 2.0 * wins / pairs - 1.0
    with np.errstate(divide="ignore"):
        t = mean / np.sqrt((1.0 - mean**2) / (pairs - 1))
    is_claimed = 2.0 * stats.t.sf(np.abs(t), pairs - 1) <= ALPHA / comparisons
    rate = float(stats.binom.pmf(wins, pairs, 0.5)[is_claimed].sum())
    return 1.0 - (1.0 - rate) ** comparisons


def full_alpha_rate() -> float:
    """Return the error rate, in alphas, of guardrails at full alpha where outcome and measure correlate perfectly.

    A is better by so much that BETTER, at alpha / 2 on its side, is claimed as often as alpha. The guardrail is false
    by as much as makes its test, at alpha, reject just then. WORSE adds its own rate at this effect.
    """
    effect = stats.norm.isf(ALPHA / 2) - stats.norm.isf(ALPHA)
    worse = float(stats.norm.sf(stats.norm.isf(ALPHA / 2) + effect))
    return (ALPHA + worse) / ALPHA


def power_of_six_groups() -> float:
    """Return the power that the package says for all pairs of six groups with 6 seeds and moderated variances."""
    comparisons = 15
    question = PowerQuestion(
        margin=1.0, comparisons=comparisons, positions_matter=False, prior_df=prior_df(comparisons)
    )
    (table,) = power_tables_of([assumed(1.0, 0.5)], (6,), question, generator_of(question, (6,)))
    return table.rows[0].power


def least_coverage() -> float:
    """Return the least coverage of P(improvement) if one group is constant: the number of wins is then binomial."""
    runs = 6
    wins = np.arange(runs + 1)
    intervals = [improvement_interval(np.arange(runs) < k, np.full(runs, 0.5)) for k in wins.tolist()]
    limits = np.array([(interval.low, interval.high) for interval in intervals])
    chances = np.clip(np.concatenate((limits + 1e-9, limits - 1e-9)).ravel(), 0.0, 1.0)  # where it jumps
    is_covered = (limits[:, :1] <= chances) & (chances <= limits[:, 1:])
    return float((stats.binom.pmf(wins[:, None], runs, chances) * is_covered).sum(axis=0).min())


def _sign_flip_words() -> Iterator[str]:
    one, three, six, ten = (ALPHA / comparisons for comparisons in (1, 3, 6, 10))
    losses = {pairs: largest_losses(pairs, (one, three, six, ten)) for pairs in (11, 14)}
    assert losses[11][0] < 1.0, "points"
    yield "From 11 pairs on, the second test costs less than one point of power at α = 5 %"
    eleven = " or ".join((", ".join(f"{loss:.0f}" for loss in losses[11][1:3]), f"{losses[11][3]:.0f}"))
    fourteen = " or ".join((", ".join(f"{loss:.0f}" for loss in losses[14][1:3]), f"{losses[14][3]:.0f}"))
    yield f"Where 3, 6 or 10 comparisons share α it costs up to {eleven} points with 11 pairs and {fourteen} with 14"
    alone, both = powers(6, 1.0, one)
    assert 0.3 < 1.0 - both / alone < 0.36, "a third"
    yield "the exact test would correct that for a third of the power"
    costs = [
        100.0 * (alone - both) for pairs in (9, 10) for alone, both in (powers(pairs, mean, one) for mean in _MEANS)
    ]
    yield f"the exact test would cost {min(costs):.1f} to {max(costs):.0f} points"


def largest_losses(pairs: int, shares: tuple[float, ...]) -> list[float]:
    """Return, by share of alpha, by how many points of power the sign-flip test is more costly at the most."""
    losses = []
    for share in shares:
        by_mean = [powers(pairs, mean, share) for mean in _MEANS]
        losses.append(max(100.0 * (alone - both) for alone, both in by_mean))
    return losses


def powers(pairs: int, mean: float, share: float) -> tuple[float, float]:
    """Return the power of the t test, and of the t and the sign-flip test, at normal differences with an SD of 1."""
    differences = np.random.default_rng(1).normal(mean, 1.0, (_EXPERIMENTS, pairs))
    t = differences.mean(axis=1) / differences.std(axis=1, ddof=1) * np.sqrt(pairs)
    by_t = 2.0 * stats.t.sf(np.abs(t), pairs - 1) <= share
    both = by_t & (_flip_p(differences) <= share)
    return float(by_t.mean()), float(both.mean())


def _flip_p(differences: Floats) -> Floats:
    """Return the exact p of sign flips of each row; of two opposite patterns, one is enough."""
    pairs = differences.shape[1]
    patterns = np.arange(2 ** (pairs - 1))[:, None] >> np.arange(pairs)
    signs = 1.0 - 2.0 * (patterns & 1)
    parts = np.array_split(differences, max(1, len(differences) // _AT_ONCE))
    shares = [
        (np.abs(part @ signs.T) >= np.abs(part.sum(axis=1))[:, None] * (1.0 - 1e-9)).mean(axis=1) for part in parts
    ]
    return np.concatenate(shares)


def missing(page_text: str) -> list[str]:
    """Print the words that a page must have, and return those that it lacks."""
    joined = " ".join(page_text.split())
    missing_words = []
    for words in expected_words():
        print(words)
        if words not in joined:
            missing_words.append(words)
    return missing_words


def main() -> int:
    """Print the words, and return 1 if the page lacks some."""
    missing_words = missing(PAGE.read_text(encoding="utf-8"))
    for words in missing_words:
        print(f"not in {PAGE.name}: {words}", file=sys.stderr)
    return 1 if missing_words else 0


if __name__ == "__main__":
    sys.exit(main())
