"""Verdicts: what each kind of outcome allows to be said, and that nothing more is said."""

from __future__ import annotations

import numpy as np
import pytest
from support.comparing import (
    BETTER_A,
    BETTER_B,
    SMALL,
    A,
    compared,
    design,
    exploded,
    lost,
    open_ended,
    pairs_of,
    small,
)

from esper_ab.design.design import Boundary, Futility, extended
from esper_ab.stats.pair import Pair
from esper_ab.verdict.vocabulary import Finding, Verdict

CLAIMS = (Verdict.BETTER, Verdict.WORSE, Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN, Verdict.EQUIVALENT)
ALIASED = Finding(kind="aliased", weight="blocks", groups=(), sentence="Device and group are aliased.")


def test_a_clear_effect_over_six_pairs_is_better_and_worse_from_the_other_side():
    there = compared(design(6), pairs_of(BETTER_A, BETTER_B))
    back = compared(design(6), pairs_of(BETTER_B, BETTER_A))
    assert (there.verdict, back.verdict) == (Verdict.BETTER, Verdict.WORSE)
    assert there.sentence.startswith("BETTER (6 pairs). shaped - simplified = +4.48 points")
    assert there.sentence.endswith("Conditional on task t, 5 steps.")
    assert there.descriptive["improvement"].wins == 6
    assert there.descriptive["improvement"].cliffs_delta == 1.0
    assert there.descriptive["sign_flip"].p == there.rank.p == 0.03125
    assert (str(there.level), there.low, there.high) == ("95 % interval", there.plain.low, there.plain.high)


def test_the_declared_adjustment_decides_and_the_plain_one_stands_beside_it():
    shift = np.array([4.0, -4.0] * 3)  # a's position
    pairs = pairs_of(np.array(BETTER_A) + shift, BETTER_B)
    adjusted, plain = compared(design(6, adjusted=True), pairs), compared(design(6), pairs)
    assert (adjusted.verdict, plain.verdict) == (Verdict.BETTER, Verdict.INCONCLUSIVE)
    assert "adjusted paired t p" in adjusted.sentence
    assert adjusted.plain.p == plain.effect.p > 0.05


def test_a_crossing_at_an_early_look_is_said_with_its_repeated_interval():
    result = compared(design(10), pairs_of(BETTER_A, BETTER_B))
    assert result.verdict is Verdict.BETTER
    assert "95 % repeated interval +3.25 to +5.72" in result.sentence
    assert "(0.0076 asked for), decided after seed 6 (look 1 of 2)" in result.sentence
    assert "these numbers" not in result.sentence
    assert any("overestimated" in caveat for caveat in result.caveats)


def test_an_interval_inside_the_margin_is_below_it():
    above, base = 75.0 + SMALL, np.full(16, 70.0)
    for a, b, verdict in (
        (above, base, Verdict.BETTER_BELOW_MARGIN), (base, above, Verdict.WORSE_BELOW_MARGIN)
    ):
        result = compared(design(16, margin=6.0), pairs_of(a, b))
        assert result.verdict is verdict
        assert "smaller than the margin of 6 points" in result.sentence
    assert compared(design(16, margin=5.0), pairs_of(above, base)).verdict is Verdict.BETTER


def test_before_fifteen_pairs_nothing_is_called_smaller_than_the_margin():
    said = "Calling it smaller than the margin takes 15 pairs."
    result = compared(design(6, margin=6.0), pairs_of(BETTER_A, BETTER_B))
    assert result.verdict is Verdict.BETTER
    assert said in result.sentence
    early = small(8)
    assert (early.verdict, early.course.decision) == (Verdict.INCONCLUSIVE, "open")
    assert said in early.sentence
    assert early.headline.endswith("but calling the difference smaller than the margin takes 15 pairs.")
    assert said not in compared(design(6), pairs_of(BETTER_A, BETTER_B)).sentence


def test_small_differences_of_both_signs_are_equivalent_and_not_merely_undecided():
    result = small()
    assert result.verdict is Verdict.EQUIVALENT
    assert "EQUIVALENT within +-2 points (16 pairs)" in result.sentence
    assert result.equivalence.reached
    assert small(rule=design(16, margin=0.1)).verdict is Verdict.INCONCLUSIVE


def test_an_equivalence_prints_the_interval_that_it_rests_on():
    """Two one-sided tests at 5 % are the 90 % interval."""
    result = small(rule=design(16, margin=3.0))
    look = result.last_look
    assert (result.low, result.high) == (look.equivalence_low, look.equivalence_high)
    assert str(result.level) == "90 % interval"
    assert look.low < result.low < result.high < look.high
    assert "90 % interval" in result.sentence
    assert "(90 % interval 0." in result.headline
    several = compared(design(16, 3), pairs_of(70.0 + SMALL, np.full(16, 70.0)))
    assert (several.verdict, str(several.level)) == (Verdict.EQUIVALENT, "96.7 % interval")
    capped = small(findings=(exploded(),))
    assert (capped.verdict, str(capped.level)) == (Verdict.INCONCLUSIVE, "95 % interval")


def test_a_constant_difference_is_reported_and_not_divided_by():
    result = compared(design(6), pairs_of(np.array(BETTER_A), np.array(BETTER_A) - 2.0))
    assert result.verdict is Verdict.INCONCLUSIVE
    said = "every pair differs by +2.00 points; no test of a mean applies to a constant; this is the answer for these"
    assert said in result.sentence
    assert result.headline == "Not decided: every pair differs by +2.00 points; this is the answer for these seeds."
    assert "beyond" not in result.sentence
    equal = compared(design(6), pairs_of(BETTER_A, BETTER_A))
    assert "without any spread there is no test" in equal.sentence
    assert any("saturated" in caveat for caveat in equal.caveats)
    sides = np.arange(6) % 2
    beside = compared(design(6, adjusted=True), pairs_of(71.0 + 2.0 * sides, 70.0 + 2.0 * (1 - sides)))
    assert beside.verdict is Verdict.INCONCLUSIVE
    assert "beside device and order nothing varies" in beside.sentence


def test_between_looks_there_is_no_verdict_and_the_next_look_is_named():
    result = compared(design(10), pairs_of(BETTER_A[:5], BETTER_B[:5]))
    assert result.verdict is Verdict.NO_INFERENCE
    assert result.sentence.startswith("NO INFERENCE so far (5 of 10 pairs)")
    assert "It can be decided after seed 6 (look 1 of 2), not before" in result.sentence
    assert "not corrected for looking early" in str(result.level)
    assert "5 of 10 planned pairs" in result.caveats[0]


def test_without_early_stops_it_is_said_of_which_look_the_numbers_are():
    a, b = (*BETTER_A, *BETTER_A[:4]), (*BETTER_B, *BETTER_B[:4])
    rule = design(10, early_stop=False)
    early, late = (compared(rule, pairs_of(a[:n], b[:n])) for n in (6, 10))
    assert early.course.decided_at == late.course.decided_at == 6
    assert ", decided after seed 6 (look 1 of 2)." in early.sentence
    said = ", decided after seed 6 (look 1 of 2); these numbers and their bound are those after seed 10 "
    assert f"{said}(look 2 of 2)." in late.sentence
    assert f"({late.last_look.bound_p:.2g} asked for), decided" in late.sentence


def test_after_a_look_the_numbers_are_those_of_the_look():
    a, b = (75.0, 70.2, 74.1, 68.7, 76.0, 74.4, 99.0), (70.1, 72.0, 70.3, 70.0, 71.7, 70.4, 1.0)
    result = compared(design(10), pairs_of(a, b))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert (result.used, len(result.pairs)) == (6, 7)
    assert result.estimate == pytest.approx(np.mean(np.subtract(a, b)[:6]))
    assert "At the last look, with 6 pairs: " in result.sentence
    assert "after seed 10 (look 2 of 2)" in result.sentence


def test_without_a_maximum_the_evidence_decides_and_nothing_is_beyond_the_budget():
    there = compared(open_ended(), pairs_of(BETTER_A, BETTER_B))
    assert there.verdict is Verdict.BETTER
    assert "(20 asked for), decided after seed 6" in there.sentence
    assert "anytime-valid interval" in str(there.level)
    assert there.equivalence is None
    d = np.array([6.0, -5.0, 4.0, -6.0, 5.0, -3.0])
    still = compared(open_ended(), pairs_of(60.0 + d, np.full(6, 60.0)))
    assert still.sentence.startswith("INCONCLUSIVE so far (6 pairs)")
    assert "It can be decided after every further pair" in still.sentence
    assert "budget" not in still.sentence
    assert still.smallest_resolvable is None


def test_several_comparisons_share_the_error():
    a, b = (75.0, 76.2, 74.1, 75.7, 74.3, 74.4), (71.6, 75.6, 71.8, 74.0, 73.3, 74.0)
    alone, shared = compared(design(6), pairs_of(a, b)), compared(design(6, comparisons=3), pairs_of(a, b))
    assert alone.plain.p < 0.05
    assert (alone.verdict, shared.verdict) == (Verdict.BETTER, Verdict.INCONCLUSIVE)
    assert shared.plain.level == pytest.approx(1 - 0.05 / 3)
    assert "98.3 % interval" in shared.sentence
    assert "3 comparisons share alpha" in shared.rule


def test_pairs_that_cannot_be_told_from_their_positions_decide_nothing():
    aliased = [Pair(replicate=r, a=70.0 + r, b=70.5 + 7 * r % 5, position_a=0, position_b=1) for r in range(10)]
    apart = compared(design(10), aliased)
    assert "group and order cannot be told apart in these pairs, so the look decides nothing." in apart.sentence
    assert (apart.verdict, apart.low) == (Verdict.INCONCLUSIVE, None)


def going_on(looks, **changes):
    """Two looks and no early stop."""
    nominal = (Boundary(open=1, alpha=0.05, nominal_p=(0.0455, 0.0455)),)
    return design(20, looks=looks, boundaries=nominal, early_stop=False, **changes)


def test_an_equivalence_that_later_pairs_do_not_show_is_none():
    d = np.array([*SMALL, 19.0, -18.0, 17.0, -19.0])
    rule = extended(design(16, early_stop=False), 16)
    result = compared(rule, pairs_of(70.0 + d, np.full(20, 70.0)))
    assert (result.course.decision, result.verdict) == ("equivalent", Verdict.INCONCLUSIVE)
    assert "Equivalence was shown after seed 16 (look 1 of 1), but the last look does not show" in result.sentence
    assert result.headline.endswith("but what an earlier look decided the last one does not show.")


def test_a_crossing_that_later_pairs_reverse_is_none():
    """Better by 8 after six pairs, worse by 5 after ten."""
    d = [8.0, 8.5, 7.5, 8.2, 7.8, 8.1, -24.0, -26.0, -25.0, -23.0]
    pairs = pairs_of(60.0 + np.array(d), np.full(10, 60.0))
    assert compared(going_on((6, 10)), pairs[:6]).verdict is Verdict.BETTER
    result = compared(going_on((6, 10)), pairs)
    assert (result.course.decision, result.course.direction, result.verdict) == ("crossed", 1, Verdict.INCONCLUSIVE)
    assert "The boundary was crossed after seed 6 (look 1 of 2), but the last look" in result.sentence
    assert "better than simplified by" not in result.headline


def test_a_look_that_found_no_pair_says_so():
    gone = lost(*((r, None, None) for r in range(6)))
    result = compared(design(10), pairs_of(BETTER_A[:2], BETTER_B[:2], [6, 7]), lost=gone)
    assert result.verdict is Verdict.NO_INFERENCE
    assert result.sentence.startswith("NO INFERENCE so far (2 of 10 pairs). At the last look no pair was complete. It")


def test_few_pairs_rule_nothing_out_that_an_exact_test_could_show():
    result = compared(design(3, alpha=0.3), pairs_of([75.0, 80.0, 78.0], [70.0, 71.0, 70.7]))
    assert result.verdict is Verdict.NO_INFERENCE
    assert "possible with 3 pairs is p = 0.25. A verdict needs at least 6 pairs" in result.sentence


def test_the_rule_that_may_always_be_looked_at_does_not_warn_of_looking():
    early = compared(open_ended(), pairs_of(BETTER_A[:3], BETTER_B[:3]), planned=6)
    assert early.caveats[0] == "3 of 6 planned pairs are complete."
    assert "It can be decided after every further pair from the 6th on." in early.sentence
    done = compared(open_ended(), pairs_of(BETTER_A, BETTER_B))
    assert (done.verdict, done.course.decided_at) == (Verdict.BETTER, 6)
    assert any("as soon as the evidence sufficed: differences that stop early" in caveat for caveat in done.caveats)


def test_what_was_declared_unusual_is_said():
    a, b = [*BETTER_A, 72.0, 70.0, 71.0, 70.5], [*BETTER_B, 72.5, 73.0, 71.2, 71.0]
    result = compared(design(10, early_stop=False), pairs_of(a, b), paired=False)
    assert result.verdict is Verdict.BETTER
    assert "decided after seed 6 (look 1 of 2)" in result.sentence
    assert result.used == 10
    said = " ".join(result.caveats)
    assert "No early stop" in said
    assert "Unpaired" in said


# --- audit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [(), pairs_of(BETTER_A[:1], BETTER_B[:1]), pairs_of(BETTER_A, BETTER_B)])
def test_the_audit_blocks_whatever_the_pairs_say(pairs):
    result = compared(design(6), pairs, findings=(ALIASED,))
    assert result.verdict is Verdict.BLOCKED
    assert "Device and group are aliased." in result.sentence


def test_a_cap_leaves_inconclusive_and_says_why():
    result = compared(design(6), pairs_of(BETTER_A, BETTER_B), findings=(exploded(A),))
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.BETTER)
    assert "The pairs alone would say BETTER, but: The policy's ratios exploded." in result.sentence


def test_findings_on_other_groups_and_notes_change_nothing():
    note = Finding(kind="driver", weight="notes", groups=(), sentence="Drivers differ.")
    result = compared(design(6), pairs_of(BETTER_A, BETTER_B), findings=(exploded("other"), note))
    assert result.verdict is Verdict.BETTER
    assert result.findings == (note,)


# --- what INCONCLUSIVE means ---------------------------------------------------------------------------------------


def test_inconclusive_says_whether_the_margin_was_within_reach():
    d = np.array([1.5, -1.4, 1.0, -0.9, 2.2, -0.2, 0.9, -1.6, 1.8, 0.4, 0.7, -1.1, 1.9, -0.7, 1.3, 0.6])
    d = 2.4 * (d - d.mean()) / d.std(ddof=1)
    bounded = compared(design(16), pairs_of(71.1 + d, np.full(16, 70.0)))
    assert (bounded.verdict, bounded.inconclusive) == (Verdict.INCONCLUSIVE, "bounded")
    assert f"Bounded: differences beyond {bounded.high:.2f} points are ruled out." in bounded.sentence
    assert bounded.smallest_resolvable <= 2.0 < bounded.high
    wide = compared(design(16), pairs_of(70.6 + 3.0 * d, np.full(16, 70.0)))
    assert (wide.verdict, wide.inconclusive) == (Verdict.INCONCLUSIVE, "uninformative")
    assert "Uninformative: a difference of 2 points was beyond this plan's reach; differences beyond" in wide.sentence
    assert wide.smallest_resolvable > 2.0
    assert compared(design(10), pairs_of(70.0 + d[:6], np.full(6, 70.0))).inconclusive is None  # in progress
    assert small(findings=(exploded(),)).inconclusive is None  # not for want of pairs


# --- several comparisons -------------------------------------------------------------------------------------------


def test_below_margin_rests_on_the_simultaneous_interval_and_prints_it():
    above, base = 75.0 + SMALL, np.full(16, 70.0)
    result = compared(design(16, 3, margin=6.0), pairs_of(above, base))
    assert result.verdict is Verdict.BETTER_BELOW_MARGIN
    low, high, level = result.simultaneous
    assert (low, high) == (result.last_look.simultaneous_low, result.last_look.simultaneous_high)
    assert str(level) == "95 % simultaneous interval"
    said = f"smaller than the margin of 6 points (95 % simultaneous interval {low:+.2f} to {high:+.2f})"
    assert said in result.sentence


STOPS = Futility(power=0.8, nominal_p=(0.098, 0.0))


def test_what_was_stopped_for_futility_says_so_everywhere_and_claims_nothing():
    result = compared(design(10, futility=STOPS), pairs_of(70.0 + SMALL[:6], np.full(6, 70.0)))
    assert (result.verdict, result.inconclusive, result.course.finished) == (Verdict.INCONCLUSIVE, "futile", True)
    low, high, level = result.futility
    assert -2.0 < low < high < 2.0
    assert str(level) == "80.4 % futility interval"
    assert result.low < low < high < result.high
    said = "Stopped for futility after seed 6 (look 1 of 2): the 80.4 % futility interval"
    assert said in result.sentence
    assert "lies inside +-2 points, so that a difference that large is unlikely; this is no claim" in result.sentence
    assert "more pairs" not in result.sentence
    assert "it was stopped for futility: a difference of the margin had become unlikely" in result.headline
    assert any("what further pairs would have shown, EQUIVALENT included, is unknown" in one for one in result.caveats)
    assert (result.unseen, result.imputed) == (None, None)


def test_losses_and_audit_add_nothing_to_a_stop_for_futility():
    gone = lost((0, None, 60.0))
    pairs = pairs_of(70.0 + SMALL[1:10], np.full(9, 70.0), range(1, 10))
    rule = design(10, looks=(8, 10), futility=STOPS)
    result = compared(rule, pairs, lost=gone, complete=8)
    assert (result.inconclusive, result.imputed, result.used) == ("futile", None, 7)
    assert compared(rule, pairs, lost=gone, complete=8, findings=(exploded(),)).inconclusive is None


def test_an_anytime_valid_interval_holds_at_the_level_that_was_asked_for():
    result = small(8, open_ended())
    assert (result.level.confidence, str(result.level)) == (0.95, "95 % anytime-valid interval")


def test_no_more_pairs_are_hoped_for_than_the_plan_has_left():
    gone = lost((6, None, 70.0), (7, None, 70.0))
    assert compared(design(16), pairs_of(BETTER_A, BETTER_B), lost=gone).most_pairs == 14


@pytest.mark.parametrize("constant", [True, False])
def test_where_positions_cannot_be_told_apart_there_is_no_adjusted_test(constant):
    differences = np.full(6, 2.0) if constant else SMALL[:6]
    pairs = tuple(
        Pair(replicate=r, a=70.0 + d, b=70.0, position_a=0, position_b=1) for r, d in enumerate(differences)
    )
    result = compared(design(6, adjusted=True), pairs)
    assert result.effect is None
    assert result.degenerate == constant
    assert result.verdict is Verdict.INCONCLUSIVE
    assert constant or "group and order cannot be told apart" in result.sentence
