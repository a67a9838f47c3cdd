"""The independent implementation of the rules in tests/simulation gives the product's verdicts and intervals."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from simulation.procedure import OPEN_ENDED_SMALL, Losses, Rule, anytime, comparisons, default_looks, follow, settle
from support.outcomes.compared_designs import pairs_of
from support.outcomes.look_designs import design

from esper_ab.design.bounds import find_bounds
from esper_ab.design.design import Boundary, Contrast
from esper_ab.design.design import default_looks as product_looks
from esper_ab.stats.least_pairs import LEAST_OPEN_ENDED_PAIRS
from esper_ab.stats.pair import Pairs
from esper_ab.verdict.comparison import compare
from esper_ab.verdict.looks import progress_after as product_follow
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import HalfPair, Lost, Question

PATHS = 100_000  # simulated experiments that calibrate the bounds, which the product then uses
RULES = {
    "6": Rule(default_looks(6), paths=PATHS),
    "8": Rule(default_looks(8), paths=PATHS),
    "16": Rule(default_looks(16), paths=PATHS),
    "20": Rule(default_looks(20), paths=PATHS),
    "30": Rule(default_looks(30), paths=PATHS),
    "anytime": anytime(32),
}


def test_simulated_plans_have_the_looks_of_the_product():
    assert [default_looks(n) for n in range(6, 101)] == [product_looks(n) for n in range(6, 101)]
    assert OPEN_ENDED_SMALL == LEAST_OPEN_ENDED_PAIRS


def test_simulated_bounds_equal_those_of_the_product():
    looks = (10, 14, 20)
    alphas = (0.05, 0.05 / 3)
    bounds = find_bounds([(0, 1)] * looks[-1], 1, looks, alphas)
    for k in range(len(looks)):
        simulated_bounds = Rule(looks, paths=500_000).nominal(k, np.array(alphas))
        assert [bounds_at_alpha[k] for bounds_at_alpha in bounds] == pytest.approx(simulated_bounds.tolist(), rel=0.05)


def make_design(rule, index_pairs, **changes):
    """Return the product's design with the bounds of `rule`."""
    contrasts = tuple(Contrast(a=f"g{a}", b=f"g{b}") for a, b in index_pairs)
    shares = {} if rule.anytime else {n: 0.05 / n for n in range(len(index_pairs), 0, -1)}
    boundaries = tuple(
        Boundary(open=n, alpha=s, nominal_p=tuple(float(rule.nominal(k, np.array(s))) for k in range(len(rule.looks))))
        for n, s in shares.items()
    )
    return msgspec.structs.replace(
        design(),
        comparisons=contrasts,
        adjusted=False,
        positions_matter=False,
        boundaries=boundaries,
        looks=() if rule.anytime else rule.looks,
        anytime_after=0 if rule.anytime else None,
        **changes,
    )


def find_verdict(product_design, contrast, pairs, progress, lost_pairs=()):
    """Return the product's verdict on one comparison."""
    question = Question(
        a=contrast.a, b=contrast.b, design=product_design, planned=max(product_design.looks, default=32), scope="task t"
    )
    pairing = Pairing(pairs=Pairs.of(pairs), lost=Lost(replicates=tuple(lost_pairs)))
    return str(compare(question, pairing, progress, same_records=False, findings=()).verdict)


def judge_by_product(rule, x, index_pairs, *, whole):
    """Yield (verdict, low, high, pairs) per comparison; the verdict by `compare` if `whole`, else by the look."""
    product_design = make_design(rule, index_pairs)
    pairs = {c: pairs_of(x[a], x[b]) for c, (a, b) in zip(product_design.comparisons, index_pairs, strict=True)}
    for contrast, progress in product_follow(product_design, pairs, x.shape[1]).items():
        last_look = progress.looks[-1]
        word = word_verdict(progress.decision == "equivalent", progress.direction, last_look.small)
        verdict = find_verdict(product_design, contrast, pairs[contrast], progress) if whole else word
        yield verdict, last_look.low, last_look.high, last_look.pairs


def word_verdict(equivalent, direction, is_small):
    """Return the verdict in the product's words."""
    if equivalent:
        return "EQUIVALENT"
    word = {1: "BETTER", -1: "WORSE", 0: "INCONCLUSIVE"}[int(direction)]
    return f"{word}, BELOW MARGIN" if direction and is_small else word


@pytest.mark.parametrize("name", RULES)
def test_the_product_gives_the_simulated_verdicts_and_intervals(name):
    rule = RULES[name]
    rng = np.random.default_rng([36, *name.encode()])
    counts = Counter()
    for number in range(60):
        groups = int(rng.integers(2, 5))
        index_pairs = comparisons(groups, against=bool(rng.integers(2)))
        x = 50 + rng.standard_normal((groups, rule.looks[-1])) * rng.choice([0.4, 1.0, 2.5])
        x += rng.choice([0.0, 0.5, 1.0, 2.0, 4.0], groups)[:, None]
        if name == "8":  # here the sign-flip test also decides
            x += 4.0 * (rng.random(x.shape) < 0.5)
        coarse = number % 5 == 0  # many pairs agree
        x = np.round(x / 3) * 3 if coarse else x
        state = follow(np.stack([x[a] - x[b] for a, b in index_pairs])[None], rule, 2.0, coarse=coarse)
        for i, (word, low, high, pairs) in enumerate(judge_by_product(rule, x, index_pairs, whole=number % 10 == 0)):
            simulated_verdict = word_verdict(state.equivalent[0, i], state.crossed[0, i], state.below[0, i])
            assert (word, pairs) == (simulated_verdict, state.pairs[0, i]), (name, number, i)
            if low is not None and np.isfinite(state.low[0, i]):
                assert (low, high) == pytest.approx((state.low[0, i], state.high[0, i]), abs=1e-6)
            counts[word] += 1
    assert {"BETTER", "WORSE", "INCONCLUSIVE"} <= set(counts)
    assert name in ("6", "8") or {"EQUIVALENT", "BETTER, BELOW MARGIN"} & set(counts)


@pytest.mark.parametrize("worst_outcome", [None, 20.0, 49.5])
def test_the_product_gives_the_simulated_verdicts_with_lost_runs(worst_outcome):
    rule = RULES["20"]
    rng = np.random.default_rng(37)
    counts = Counter()
    product_design = make_design(rule, [(0, 1)], worst=worst_outcome)
    (contrast,) = product_design.comparisons
    for number in range(40):
        a, b = 50 + rng.standard_normal((2, 20)) * rng.choice([0.2, 1.0])
        a += rng.choice([0.0, 4.0, -4.0])
        failed_a, failed_b = rng.random((2, 20)) < rng.choice([0.03, 0.1])
        cancelled = rng.random(20) < 0.5
        runs = Losses(*(v[None] for v in (a, b, failed_a, failed_b, cancelled)))
        observed, state_with_losses = settle(runs, rule, 2.0, worst_outcome)
        whole = np.flatnonzero(~(failed_a | failed_b))
        pairs = pairs_of(a[whole], b[whole], whole.tolist())
        progress = product_follow(product_design, {contrast: pairs}, 20)[contrast]
        half_pairs = [
            HalfPair(
                replicate=r,
                a=None if failures[0] or is_single else float(a[r]),
                b=None if failures[1] or is_single else float(b[r]),
                failed_a=failures[0],
                failed_b=failures[1],
                position_a=0,
                position_b=1,
            )
            for r, *failures, is_single in zip(range(20), failed_a.tolist(), failed_b.tolist(), cancelled, strict=True)
            if any(failures) and r < (progress.decided_at or 20)
        ]
        words = [
            word_verdict(s.equivalent[0, 0], s.crossed[0, 0], s.below[0, 0]) for s in (observed, state_with_losses)
        ]
        assert find_verdict(product_design, contrast, pairs, progress, half_pairs) == words[1], (number, words)
        counts[f"{words[0]} -> {words[1]}" if words[0] != words[1] else words[1]] += 1
    assert {"BETTER", "BETTER -> INCONCLUSIVE", "EQUIVALENT -> INCONCLUSIVE"} <= set(counts)
