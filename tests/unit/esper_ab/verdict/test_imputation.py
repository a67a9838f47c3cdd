"""Claims that could be overturned: lost runs with the declared worst outcome, and unseen collapses."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outcomes.compared_designs import BETTER_A, BETTER_B, compared, design, lost, pairs_of
from support.outcomes.compared_designs import SMALL as NOISE

from esper_ab.design.design import Boundary
from esper_ab.stats.pair import NO_PAIRS, Samples
from esper_ab.verdict.caveats import routine
from esper_ab.verdict.imputation import completed, imputed, limits_with_losses, recurs_in
from esper_ab.verdict.looks import progress_after
from esper_ab.verdict.question import Lost
from esper_ab.verdict.verdict import Verdict
from workers.kinds.growth.measures import MEASURES


def make_half_pair(replicate, a, b, failed_groups="ab"):
    """Return a replicate that was given up; runs without outcome failed if `failed_groups` names them."""
    (lost_replicate,) = lost((replicate, a, b)).replicates
    return msgspec.structs.replace(
        lost_replicate, failed_a=a is None and "a" in failed_groups, failed_b=b is None and "b" in failed_groups
    )


def find_progress(rule, pairs, complete_replicates):
    return progress_after(rule, {rule.comparisons[0]: pairs}, complete_replicates)[rule.comparisons[0]]


def test_failed_runs_are_imputed_with_the_worst_or_best_outcome():
    rule = design(6, worst=10.0)
    pairs = pairs_of([70.0, 72.0], [66.0, 70.0])
    halves = (
        make_half_pair(2, None, 80.0),
        make_half_pair(3, 60.0, None),
        make_half_pair(4, None, None, failed_groups="a"),
        make_half_pair(5, None, None, failed_groups=""),
    )
    completed_pairs, worst_outcome, best_outcome = completed(rule, pairs, halves, against_a=True)
    assert (worst_outcome, best_outcome) == (10.0, 80.0)
    assert completed_pairs[:2] == pairs
    assert [(pair.replicate, pair.a, pair.b) for pair in completed_pairs[2:]] == [
        (2, 10.0, 80.0),
        (3, 60.0, 80.0),
        (4, 10.0, 72.0),
    ]  # a third group's failure, replicate 5, says nothing about these two
    completed_pairs, _, _ = completed(rule, pairs, halves, against_a=False)
    assert [(pair.a, pair.b) for pair in completed_pairs[2:]] == [(80.0, 80.0), (60.0, 10.0), (80.0, 72.0)]
    assert completed(rule, pairs_of([5.0], [66.0]), (), against_a=True)[1] == 5.0  # worse than what was declared
    with pytest.raises(ValueError, match="empty"):
        completed(rule, NO_PAIRS, (make_half_pair(0, None, None),), against_a=True)
    with pytest.raises(ValueError, match="no worst outcome is declared"):
        completed(design(6), pairs, halves, against_a=True)


def test_the_imputed_worst_outcome_is_high_if_lower_is_better():
    outcome = msgspec.structs.replace(MEASURES.outcome, better="lower")
    rule = design(6, worst=99.0, measures=msgspec.structs.replace(MEASURES, outcome=outcome))
    completed_pairs, _, _ = completed(
        rule, pairs_of([70.0], [66.0]), (make_half_pair(1, None, None, failed_groups="ab"),), against_a=True
    )
    assert (completed_pairs[1].a, completed_pairs[1].b) == (99.0, 66.0)


@pytest.mark.parametrize(
    ("halves", "expected"),
    [
        ((make_half_pair(0, None, 1.0),), None),
        ((make_half_pair(0, None, 1.0), make_half_pair(1, None, 1.0)), "x"),
        ((make_half_pair(0, 1.0, None), make_half_pair(1, 1.0, None)), "y"),
        ((make_half_pair(0, None, 1.0), make_half_pair(1, None, 1.0), make_half_pair(2, 1.0, None)), None),
        ((make_half_pair(0, None, None, failed_groups="a"), make_half_pair(1, None, None, failed_groups="a")), "x"),
        ((make_half_pair(0, None, None, failed_groups=""), make_half_pair(1, None, None, failed_groups="")), None),
    ],
)
def test_losses_in_only_one_group_are_recurring(halves, expected):
    assert recurs_in("x", "y", Lost(replicates=halves)) == expected


@pytest.mark.parametrize(("early_stop", "looks"), [(True, [6]), (False, [6, 10])])
def test_losses_after_the_last_look_are_not_imputed(early_stop, looks):
    """The verdict belongs to that look, so only losses before it could overturn the verdict."""
    rule = design(10, early_stop=early_stop, worst=0.0)
    pairs = pairs_of(75.0 + np.arange(7) * 0.1, 70.0 + np.arange(7) * 0.2)
    progress = find_progress(rule, pairs, 10)
    assert (progress.decided_at, [look.replicates for look in progress.looks]) == (6, looks)
    retest = imputed(rule, pairs, progress, lost(*((r, None, 75.0) for r in (7, 8, 9))))
    assert (retest and (retest.pairs, retest.survives)) == (None if early_stop else (10, False))


def test_imputed_pairs_are_tested_at_the_deciding_bound():
    """The same lost run leaves a decision at 0.05 and overturns one at 0.0076."""
    pairs = pairs_of(BETTER_A, BETTER_B)
    design_of_one_look = design(8, worst=70.0)
    strict_design = msgspec.structs.replace(
        design_of_one_look, boundaries=(Boundary(open=1, alpha=0.05, nominal_p=(0.0076,)),)
    )
    lenient_retest, strict_retest = (
        imputed(rule, pairs, find_progress(rule, pairs, 8), lost((6, None, 73.0)))
        for rule in (design_of_one_look, strict_design)
    )
    assert lenient_retest.p == strict_retest.p
    assert 0.0076 < lenient_retest.p < 0.05
    assert (lenient_retest.survives, strict_retest.survives) == (True, False)


@given(
    st.lists(st.floats(-2.0, 2.0), min_size=6, max_size=6).filter(lambda d: np.std(d) > 0.05),
    st.lists(st.tuples(st.floats(50.0, 90.0), st.sampled_from("ab")), min_size=1, max_size=3),
    st.sampled_from([5.0, -5.0]),
)
def test_imputation_never_favours_the_tested_claim(noise, survivors, effect):
    """No possible outcome of the lost runs speaks more against the claim, whichever group lost them."""
    rule = design(8, looks=(9,), worst=50.0)
    pairs = pairs_of(np.full(6, 70.0 + effect), 70.0 + np.array(noise))
    progress = find_progress(rule, pairs, 9)
    losses = lost(
        *(
            (6 + i, None, outcome_left) if failed_side == "a" else (6 + i, outcome_left, None)
            for i, (outcome_left, failed_side) in enumerate(survivors)
        )
    )
    retest = imputed(rule, pairs, progress, losses)
    if progress.decision == "open":
        assert retest is None
        return
    assert (retest.pairs, retest.lost_a + retest.lost_b) == (6 + len(survivors), len(survivors))
    total = sum(pair.a - pair.b for pair in pairs)
    for value in (
        50.0,
        *(value for pair in pairs for value in (pair.a, pair.b)),
        *(outcome_left for outcome_left, _ in survivors),
    ):
        gain_of_a, gain_of_b = (
            sum(value - outcome_left for outcome_left, failed_side in survivors if failed_side == side) for side in "ab"
        )
        assert (
            progress.direction * retest.mean
            <= progress.direction * (total + gain_of_a - gain_of_b) / retest.pairs + 1e-9
        )


def impute_equivalent(worst_outcome, halves):
    """Return the retest, the limits with losses and the progress of an equivalence."""
    base = 70.0 + 3.0 * np.sin(np.arange(16))  # runs differ by more than the groups do
    rule = design(20, worst=worst_outcome)
    pairs = pairs_of(base + NOISE, base)
    losses = Lost(replicates=halves)
    progress = find_progress(rule, pairs, 20)
    assert progress.decision == "equivalent"
    return imputed(rule, pairs, progress, losses), limits_with_losses(rule, pairs, progress, losses), progress


@pytest.mark.parametrize(
    ("worst_outcome", "halves", "is_small"),
    [
        (66.0, (make_half_pair(16, None, None),), True),  # one replicate in which both failed
        (66.0, (make_half_pair(16, None, 70.0), make_half_pair(17, 70.0, None)), True),
        (30.0, (make_half_pair(16, None, 70.0), make_half_pair(17, 70.0, None)), False),
        (66.0, (make_half_pair(16, None, 70.0),), False),  # in one group only
        (66.0, tuple(make_half_pair(r, None, None) for r in (16, 17)), False),  # two in each
        (None, (make_half_pair(16, None, None),), False),
    ],
)
def test_an_equivalence_survives_at_most_one_loss_per_group(worst_outcome, halves, is_small):
    retest, limits, _ = impute_equivalent(worst_outcome, halves)
    assert (retest.survives, retest.small) == (is_small, is_small)
    assert (limits[0] is not None and -2.0 < limits[0] <= limits[1] < 2.0) == is_small


@pytest.mark.parametrize(
    "halves",
    [
        (make_half_pair(16, None, 73.0), make_half_pair(17, 70.0, None)),
        (make_half_pair(16, None, 70.0), make_half_pair(17, 73.0, None)),
    ],
)
def test_the_more_harmful_loss_decides_whether_an_equivalence_survives(halves):
    assert [impute_equivalent(worst_outcome, halves)[0].survives for worst_outcome in (66.0, 61.0)] == [True, False]


def test_only_lost_runs_are_imputed_if_runs_are_unpaired():
    rule = design(8, test="welch", positions=1, worst=10.0)
    runs = Samples(a=np.array([70.0, 72.0]), b=np.array([66.0]))
    completed_samples, worst_outcome, best_outcome = completed(
        rule, runs, (make_half_pair(2, None, 80.0), make_half_pair(3, 60.0, None)), against_a=True
    )
    assert (completed_samples.a.tolist(), completed_samples.b.tolist()) == ([70.0, 72.0, 10.0], [66.0, 80.0])
    assert (worst_outcome, best_outcome) == (10.0, 80.0)


# A collapse that no run showed: how often it may strike, and whether the claim survives one.


WAVES = np.random.default_rng(5).standard_normal(20)


def compare_shifted(shift, n=20, depth=0.0, **changes):
    """Compare n pairs in which a is better by `shift`; in one pair, both runs end `depth` lower."""
    b = 70.0 + 0.0 * WAVES[:n]
    b[3] -= depth
    return compared(design(n, **changes), pairs_of(b + shift + WAVES[:n], b))


@pytest.mark.parametrize(("n", "rate"), [(6, 0.393), (8, 0.312), (20, 0.139)])
def test_the_unseen_failure_rate_is_missed_with_5_percent_probability(n, rate):
    result = compare_shifted(20.0, n)
    assert result.unseen.rate == pytest.approx(rate, abs=5e-4)
    assert (1.0 - result.unseen.rate) ** n == pytest.approx(0.05)
    assert any(f"up to {100 * rate:.0f} % of a group's runs" in caveat for caveat in result.caveats)


def test_only_a_large_effect_survives_an_unseen_collapse():
    sure_result = compare_shifted(20.0, worst=65.0)
    close = compare_shifted(0.8, worst=50.0, margin=0.5)
    assert (sure_result.verdict, sure_result.unseen.survives) == (Verdict.BETTER, True)
    assert (close.verdict, close.unseen.survives) == (Verdict.BETTER, False)
    assert close.unseen.worst == 50.0
    assert any("The verdict would not survive one more pair" in caveat for caveat in close.caveats)
    assert any("at the worst outcome declared (50.00" in caveat for caveat in close.caveats)
    extreme_result = compare_shifted(0.8, depth=30.0, worst=50.0, margin=0.5)
    assert extreme_result.unseen.worst == 40.0
    assert any("at the worst outcome seen (40.00" in caveat for caveat in extreme_result.caveats)


@pytest.mark.parametrize("shift", [0.8, 20.0])
def test_a_claim_is_not_called_safe_without_a_declared_worst_outcome(shift):
    """If no run collapsed, the worst outcome seen is an ordinary one, which any claim survives."""
    claim = compare_shifted(shift, margin=0.5)
    assert (claim.verdict, claim.unseen.worst, claim.unseen.survives) == (Verdict.BETTER, None, None)
    (rate_caveat,) = [caveat for caveat in claim.caveats if "14 %" in caveat]
    assert rate_caveat.endswith("its effect is unknown, because no worst outcome is declared (--outcome-range).")
    assert "survive" not in " ".join(claim.caveats)
    assert rate_caveat not in routine(claim)


def test_the_effect_of_an_unseen_collapse_is_the_same_if_groups_are_swapped():
    a = 70.0 + 0.3 * WAVES
    b = 70.0 + 0.0 * WAVES
    rule = design(20, worst=40.0)
    forward = compared(rule, pairs_of(a, b))
    swapped_result = compared(rule, pairs_of(b, a))
    assert (forward.verdict, swapped_result.verdict) == (Verdict.EQUIVALENT, Verdict.EQUIVALENT)
    assert forward.unseen == swapped_result.unseen
    assert forward.unseen.survives is False


def test_without_losses_the_limits_equal_those_of_the_look():
    retest, limits, progress = impute_equivalent(None, ())
    assert retest is None
    assert limits == (progress.looks[-1].low, progress.looks[-1].high)
    rule = design(20, worst=0.0)
    losses = lost((0, None, None))
    assert limits_with_losses(rule, NO_PAIRS, find_progress(rule, NO_PAIRS, 20), losses) == (None, None)


def test_a_comparison_without_a_claim_is_not_tested_for_unseen_collapses():
    assert compare_shifted(0.4, margin=0.5).unseen is None
    assert compared(design(20), pairs_of([70.0] * 3, [69.0, 68.0, 71.0])).unseen is None
