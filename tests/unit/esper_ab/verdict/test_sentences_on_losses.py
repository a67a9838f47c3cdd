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
    result = compared(design(8), pairs_of(BETTER_A, BETTER_B), lost=lost((6, None, 70.0), (7, None, 71.0)))
    assert result.verdict is Verdict.BETTER
    assert result.imputed.survives
    assert (result.imputed.given_a, result.imputed.given_b, result.imputed.pairs) == (70.0, None, 8)
    assert "2 runs of shaped and no run of simplified were lost." in result.caveats[0]
    assert "without a partner. Losses that recur" in result.caveats[0]
    assert "leaves the decision standing" in result.caveats[0]


def test_losses_that_the_worst_value_overturns_cap_the_verdict():
    result = compared(design(8), pairs_of(BETTER_A, BETTER_B), lost=lost((6, None, 76.0), (7, None, 75.0)))
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.BETTER)
    assert not result.imputed.survives
    said = "giving the lost runs of shaped 70.00 %, the observed endpoint that speaks most against it, overturns"
    assert said in result.sentence


def test_as_many_lost_runs_in_both_groups_are_imputed_as_well():
    """What was lost need not be alike: the better group may have lost its worst run, the other its best."""
    gone = lost((6, None, 76.0), (7, 70.0, None))
    result = compared(design(8), pairs_of(BETTER_A, BETTER_B), lost=gone)
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.BETTER)
    assert (result.imputed.given_a, result.imputed.given_b) == (70.0, 76.2)
    assert any("1 run of shaped and 1 run of simplified were lost." in caveat for caveat in result.caveats)


def test_what_a_worse_group_lost_gets_the_best_endpoint_and_not_the_worst():
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
    calm, telling = lost((16, None, 70.0), (17, 69.0, 69.5)), lost((16, None, 99.0))
    assert small(rule=design(20), complete=20, lost=calm).verdict is Verdict.EQUIVALENT
    assert small(rule=design(20), complete=20, lost=telling).verdict is Verdict.INCONCLUSIVE


def test_under_the_anytime_rule_the_evidence_is_asked_again():
    calm = lost((0, None, 70.0))
    pairs = pairs_of(BETTER_A, BETTER_B, replicates=range(1, 7))
    assert compared(open_ended(), pairs, lost=calm).verdict is Verdict.BETTER
    result = compared(open_ended(), pairs, lost=lost((0, None, 76.0)))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.imputed.e < 20.0
