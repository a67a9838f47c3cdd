"""One look: its evidence, differences without a test, and claims that need more than one test."""

import math

import msgspec
import numpy as np
import pytest
from scipy import special, stats
from support.outcomes.compared_designs import pairs_of
from support.outcomes.look_designs import AB, DULL, anytime, design, pairs_from, spread

from esper_ab.design.design import Boundary, Futility
from esper_ab.stats.anytime_t import log_evidence
from esper_ab.stats.pair import Pairs
from esper_ab.stats.proportions import proportions
from esper_ab.verdict.looks import progress_after

SAME = {
    "all zero": [0.0] * 20,
    "constant": [5.0] * 20,
    "jitter of a constant": [5.0 + 1e-9 * (7 * r % 5) for r in range(20)],
    "all but one zero": [0.0] * 5 + [1.3] + [0.0] * 14,
    "all but five zero": [0.0, 0.4, 0.0, -0.3, 0.0, 0.2, 0.0, 0.1, 0.0, 0.7] + [0.0] * 10,
    "beside the sides": [5.0 + (1.0 + 1e-9 * (r % 3)) * (-1) ** r for r in range(20)],
}


@pytest.mark.parametrize("kind", ["t", "anytime"])
@pytest.mark.parametrize("name", SAME)
def test_degenerate_differences_have_no_test_or_interval(name, kind):
    """No test, no e-value, no interval and no decision, by any test."""
    rule = anytime(looks=()) if kind == "anytime" else design(looks=(20,))
    progress = progress_after(rule, {AB: pairs_from(SAME[name])}, 20)[AB]
    look = progress.looks[-1]
    assert progress.decision == "open"
    assert (look.p, look.e, look.low, look.equivalence_low) == (None,) * 4
    six_others = [0.0] * 14 + [1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    assert progress_after(rule, {AB: pairs_from(six_others)}, 20)[AB].looks[-1].low is not None


def test_a_look_without_a_boundary_does_not_decide():
    small_design = design(looks=(3,), boundaries=(), adjusted=False)
    progress = progress_after(small_design, {AB: pairs_from([9.0, 9.1, 9.2])}, 3)[AB]
    (look,) = progress.looks
    p = pytest.approx(2 * stats.t.sf(9.1 / (0.1 / math.sqrt(3)), 2))
    assert (look.bound_p, look.p, look.crossed, look.equivalent) == (None, p, False, False)
    assert (look.low, progress.decision, progress.finished) == (None, "open", True)


def test_a_bound_of_zero_never_rejects():
    """A look that cannot separate groups from positions has this bound, though lost pairs may have changed that."""
    zero = design(looks=(380, 400), boundaries=(Boundary(open=1, alpha=0.05, nominal_p=(0.0, 0.05)),))
    progress = progress_after(zero, {AB: pairs_from(spread(40, 1e6, 1e2) * 10)}, 400)[AB]
    assert progress.looks[0].p == 0.0
    assert (progress.looks[0].low, progress.decided_at) == (None, 400)


def test_an_open_ended_rule_looks_after_every_replicate():
    d = spread(30, 1.0)
    progress = progress_after(anytime(early_stop=False), {AB: pairs_from(d)}, 30)[AB]
    assert [look.replicates for look in progress.looks] == list(range(1, 31))
    assert {look.bound_p for look in progress.looks} == {None} == {look.p for look in progress.looks}
    look = progress.looks[11]
    x = np.column_stack([np.ones(12), np.array([1.0, -1.0] * 6)])  # each side has an effect
    solution, residual_squares, _, _ = np.linalg.lstsq(x, np.array(d[:12]), rcond=None)
    t = solution[0] / math.sqrt(float(residual_squares[0]) / 10 / 12)
    assert look.e == pytest.approx(math.exp(log_evidence(t, 10, 12.0)), rel=1e-9)
    assert (look.bound_e, look.alpha) == (20.0, 0.05)
    first_decided_at = next(look.replicates for look in progress.looks if look.crossed or look.equivalent)
    assert progress.decided_at == first_decided_at >= 6
    assert all((look.low > 0.0) == (look.e >= 20.0) for look in progress.looks[5:])
    assert not progress_after(anytime(), {AB: pairs_from(DULL[:20])}, 20)[AB].finished


def test_an_enormous_e_value_does_not_overflow():
    n = 400
    d = (1e3 + 1e-1 * np.random.default_rng(1).standard_normal(n)).tolist()
    look = progress_after(anytime(anytime_after=n - 1), {AB: pairs_from(d)}, n)[AB].looks[-1]
    assert look.e == math.exp(700.0)


def make_binary_pairs(*counts, success=100.0):
    """Return pairs in which both, only a, only b and neither succeeded, by their counts."""
    return pairs_of(*(np.repeat(ends, counts) for ends in ((success, success, 0.0, 0.0), (success, 0.0, success, 0.0))))


@pytest.mark.parametrize(
    ("counts", "is_crossed"), [((2, 12, 1, 5), True), ((2, 6, 1, 11), False), ((2, 1, 12, 5), True)]
)
def test_a_claim_about_binary_outcomes_needs_the_exact_test_and_the_interval(counts, is_crossed):
    rule = design(looks=(20,), futility=Futility(power=0.8, nominal_p=(0.1,)))
    (look,) = progress_after(rule, {AB: make_binary_pairs(*counts)}, 20)[AB].looks
    _, wins_of_a, wins_of_b, _ = counts
    assert look.p == pytest.approx(stats.binomtest(wins_of_a, wins_of_a + wins_of_b).pvalue)
    assert (look.crossed, look.mean) == (is_crossed, pytest.approx(5.0 * (wins_of_a - wins_of_b)))
    exact_comparison = proportions(
        *zip(*((pair.a, pair.b) for pair in make_binary_pairs(*counts)), strict=True), 100.0, paired=True
    )
    for interval in ((look.low, look.high), (look.equivalence_low, look.equivalence_high)):
        assert interval == pytest.approx(exact_comparison.interval(look.bound_p))
    assert (look.futility_low, look.futility_high) == pytest.approx(exact_comparison.interval(0.1))


@pytest.mark.parametrize(("margin", "is_exact"), [(50.0, True), (100.0, False)])
def test_the_exact_test_is_not_used_for_a_margin_as_large_as_a_success(margin, is_exact):
    """Counts, and means over tasks, may happen to be all 0 or 1."""
    (look,) = progress_after(design(looks=(20,), margin=margin), {AB: make_binary_pairs(0, 18, 0, 2)}, 20)[AB].looks
    assert (look.p == pytest.approx(stats.binomtest(18, 18).pvalue)) == is_exact


@pytest.mark.parametrize(
    ("counts", "margin", "is_small"),
    [
        ((10, 0, 0, 10), 10.0, False),
        ((10, 0, 0, 10), 17.0, True),
        ((10, 7, 0, 13), 40.0, False),
    ],
)
def test_discordant_pairs_alone_must_show_that_proportions_are_close(counts, margin, is_small):
    """Even if one group is 10 points better, all of 20 pairs agree in 12 % of experiments."""
    size = sum(counts)
    (look,) = progress_after(design(looks=(size,), margin=margin), {AB: make_binary_pairs(*counts)}, size)[AB].looks
    assert (look.equivalent or look.small) == is_small
    assert (max(-look.simultaneous_low, look.simultaneous_high) < margin) == is_small
    assert look.crossed == (counts[1] > 0)


def test_under_the_anytime_rule_discordant_pairs_are_the_evidence():
    """Twelve for a and none for b: the Beta(1/2, 1/2) mixture against 1/2; an interval even if no pair disagrees."""
    progress = progress_after(anytime(early_stop=False), {AB: make_binary_pairs(0, 12, 0, 8)}, 20)[AB]
    twelfth_look = progress.looks[11]
    last_look = progress.looks[-1]
    expected = special.beta(12.5, 0.5) / special.beta(0.5, 0.5) * 2.0**12
    assert (twelfth_look.e, last_look.e) == pytest.approx((expected, expected))
    assert progress.decision == "crossed"
    assert last_look.crossed == (last_look.low > 0.0)
    look_at_equal_pairs = progress_after(anytime(margin=10.0), {AB: make_binary_pairs(20, 0, 0, 0)}, 20)[AB].looks[-1]
    assert look_at_equal_pairs.low < -10.0 < 10.0 < look_at_equal_pairs.high
    assert (
        look_at_equal_pairs.p,
        look_at_equal_pairs.e,
        look_at_equal_pairs.small,
        look_at_equal_pairs.equivalent,
    ) == (None, pytest.approx(1.0), False, False)
    assert (look_at_equal_pairs.equivalence_low, look_at_equal_pairs.equivalence_high) == (
        look_at_equal_pairs.simultaneous_low,
        look_at_equal_pairs.simultaneous_high,
    )


@pytest.mark.parametrize("change", [{"a": 50.0}, {"a": 1.0}])
def test_a_single_non_binary_outcome_leads_to_the_t_test(change):
    pairs = make_binary_pairs(2, 12, 1, 5)
    changed_pairs = Pairs.of([msgspec.structs.replace(pairs[0], **change), *pairs[1:]])
    (look,) = progress_after(design(looks=(20,)), {AB: changed_pairs}, 20)[AB].looks
    assert look.p != pytest.approx(stats.binomtest(12, 13).pvalue)


# If runs either learn or do not, the t-test alone makes a claim in up to 12.5 % of experiments with 7 or 8 pairs.


def look_at_learned(pairs_ahead, n, *, effect=0.0, positions=0.0, alpha=0.05, **changes):
    """Look at n pairs: in `pairs_ahead` of them only a learned, in the others only b; plus a position effect."""
    small_spread = np.linspace(0.1, -0.1, n)  # so that the odd pair has the largest difference
    d = np.where(np.arange(n) < pairs_ahead, 80.0, -80.0) + small_spread + effect
    d += positions * (1.0 - 2.0 * (np.arange(n) % 2))
    rule = design(looks=(n,), boundaries=(Boundary(open=1, alpha=alpha, nominal_p=(alpha,)),), alpha=alpha, **changes)
    return progress_after(rule, {AB: pairs_of(90.0 + d, np.full(n, 90.0))}, n)[AB].looks[-1]


@pytest.mark.parametrize(
    ("pairs_ahead", "n", "is_crossed"),
    [
        (6, 7, False),
        (7, 8, False),
        (7, 7, True),
        (8, 8, True),
        (8, 9, True),
        (9, 11, False),
        (10, 13, False),
        (11, 14, False),
        (12, 16, False),
        (14, 19, False),
        (10, 11, True),
        (11, 13, True),
        (15, 21, True),
    ],
)
def test_a_claim_needs_the_sign_flip_test_if_the_t_test_errs_too_often(pairs_ahead, n, is_crossed):
    look = look_at_learned(pairs_ahead, n, adjusted=False)
    assert look.p <= look.bound_p
    assert look.crossed == is_crossed


@pytest.mark.parametrize("n", [6, 7, 8, *range(9, 21)])
def test_pairs_with_exactly_one_learning_run_rarely_give_a_false_claim(n):
    """Exact, over all numbers of pairs in which the first learned; the t alone claims in 9.2 % with 13 pairs."""
    claims = [
        stats.binom.pmf(pairs_ahead, n, 0.5) * look_at_learned(pairs_ahead, n, adjusted=False).crossed
        for pairs_ahead in range(n + 1)
    ]
    assert sum(claims) <= 0.055


def test_the_sign_flip_test_is_not_required_if_it_cannot_reach_its_bound():
    assert look_at_learned(7, 7, alpha=0.01, adjusted=False).crossed  # the smallest p is 2 / 2^7 = 0.016


def test_position_effects_do_not_affect_the_sign_flip_test():
    look = look_at_learned(8, 8, effect=-70.0, positions=30.0, positions_matter=True, adjusted=True)
    assert look.crossed
    assert not look_at_learned(8, 8, effect=-70.0, positions=30.0, adjusted=False).crossed


def test_outcomes_of_0_or_1_are_binary_without_a_declared_range():
    plain_design = design(looks=(20,), margin=0.5)
    outcome = msgspec.structs.replace(plain_design.outcome, high=None)
    unlimited_design = msgspec.structs.replace(
        plain_design, measures=msgspec.structs.replace(plain_design.measures, outcome=outcome)
    )
    assert outcome.unit == "%"
    for rule, is_exact in ((unlimited_design, True), (plain_design, False)):  # with a range up to 100, 1 is no success
        (look,) = progress_after(rule, {AB: make_binary_pairs(2, 12, 1, 5, success=1.0)}, 20)[AB].looks
        assert (look.p == pytest.approx(stats.binomtest(12, 13).pvalue)) == is_exact
