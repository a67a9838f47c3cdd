"""Lost runs in a comparison: counted, imputed against the claim, said; and what the verdict is then."""

from __future__ import annotations

from support.comparing import (
    BETTER_A,
    BETTER_B,
    compared,
    design,
    lost,
    open_ended,
    pairs_of,
    small,
)

from esper_ab.verdict.word import Verdict


def test_when_every_replicate_was_lost_that_is_said_in_place_of_more_to_come():
    none = compared(design(8), (), lost=lost(*((r, 70.0, None) for r in range(8))))
    assert none.sentence.startswith("NO INFERENCE (no complete pair). ")
    assert any("No run of shaped and 8 runs of simplified were lost." in caveat for caveat in none.caveats)
    assert "(no complete pair yet)" in compared(design(8), (), lost=lost((0, 70.0, None))).sentence


def test_losses_that_the_worst_value_does_not_overturn_are_said_and_leave_the_verdict():
    gone = lost((6, None, 70.0), (7, None, 71.0))
    result = compared(design(8, worst=70.0), pairs_of(BETTER_A, BETTER_B), lost=gone)
    assert result.verdict is Verdict.BETTER
    assert result.imputed.survives
    assert (result.imputed.given_a, result.imputed.given_b, result.imputed.pairs) == (70.0, None, 8)
    assert "2 runs of shaped and no run of simplified were lost." in result.caveats[0]
    assert "without a partner. Losses that recur" in result.caveats[0]
    assert "leaves the decision standing" in result.caveats[0]


def test_losses_that_the_worst_value_overturns_cap_the_verdict():
    gone = lost((6, None, 76.0), (7, None, 75.0))
    result = compared(design(8, worst=10.0), pairs_of(BETTER_A, BETTER_B), lost=gone)
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.BETTER)
    assert not result.imputed.survives
    assert "giving the lost runs of shaped 10.00 %, which speaks most against it, overturns" in result.sentence


def test_without_a_declared_worst_no_group_that_lost_a_run_is_better_and_the_remedy_is_named():
    gone = lost((6, None, 70.0))
    for recorded, flag in ((True, "--outcome-range"), (False, "--worst")):
        result = compared(design(8), pairs_of(BETTER_A, BETTER_B), lost=gone, complete=8, recorded=recorded)
        assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.BETTER)
        assert f"no worst outcome is declared that could stand for them ({flag})." in result.sentence
    other = compared(design(8), pairs_of(BETTER_A, BETTER_B), lost=lost((6, 76.0, None)), complete=8)
    assert other.verdict is Verdict.BETTER


def test_as_many_lost_runs_in_both_groups_are_imputed_as_well():
    """What was lost need not be alike: the better group may have lost its worst run, the other its best."""
    gone = lost((6, None, 76.0), (7, 70.0, None))
    result = compared(design(8, worst=70.0), pairs_of(BETTER_A, BETTER_B), lost=gone)
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.BETTER)
    assert (result.imputed.given_a, result.imputed.given_b) == (70.0, 76.2)
    assert any("1 run of shaped and 1 run of simplified were lost." in caveat for caveat in result.caveats)


def test_what_a_worse_group_lost_gets_the_best_outcome_and_not_the_worst():
    """Its largest runs may have died of memory: 63.95 % in their place would favour the claim that it is worse."""
    gone = lost((6, 70.2, None), (7, 70.4, None))
    result = compared(design(8), pairs_of(BETTER_A, BETTER_B), lost=gone)
    assert (result.imputed.given_a, result.imputed.given_b) == (None, 76.2)
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.BETTER)


def test_lost_and_cancelled_runs_are_counted_apart():
    result = compared(design(8), pairs_of(BETTER_A, BETTER_B), lost=lost((6, None, 70.0), (7, None, 71.0)))
    assert result.lost.cancelled == (0, 2)
    said = "2 runs of shaped and no run of simplified were lost. With them 2 of simplified were cancelled or left"
    assert any(said in caveat for caveat in result.caveats)


def test_an_equivalence_must_survive_too():
    both, one = lost((16, None, None)), lost((16, None, 70.0))
    assert small(rule=design(20, worst=68.0), complete=20, lost=both).verdict is Verdict.EQUIVALENT
    assert small(rule=design(20, worst=20.0), complete=20, lost=both).verdict is Verdict.INCONCLUSIVE
    uneven = small(rule=design(20, worst=68.0), complete=20, lost=one)
    assert uneven.verdict is Verdict.INCONCLUSIVE
    assert "a difference is called small only where both groups lost as many, and at most one each." in uneven.sentence


def test_under_the_anytime_rule_the_evidence_is_asked_again():
    calm = lost((0, None, 70.0))
    pairs = pairs_of(BETTER_A, BETTER_B, replicates=range(1, 7))
    assert compared(open_ended(worst=70.0), pairs, lost=calm).verdict is Verdict.BETTER
    result = compared(open_ended(worst=70.0), pairs, lost=lost((0, None, 76.0)))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.imputed.e < 20.0
