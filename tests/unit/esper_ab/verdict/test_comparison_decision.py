"""The word of a verdict: rules that hold for all inputs, and what few pairs and equal records allow."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.comparing import BETTER_A, A, B, compared, design, exploded, lost, open_ended, pairs_of

from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Pair
from esper_ab.verdict.pairing import HalfPair, Lost
from esper_ab.verdict.vocabulary import Verdict

CLAIMS = (Verdict.BETTER, Verdict.WORSE, Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN, Verdict.EQUIVALENT)
outcomes = st.floats(40.0, 90.0).map(lambda x: round(x, 1))
noise = st.floats(-3.0, 3.0).map(lambda x: round(x, 1))
rows = st.builds(
    lambda shift, items: [(x, round(x - shift - e, 1)) for x, e in items],
    st.sampled_from((-6.0, -1.0, 0.0, 0.5, 5.0)),
    st.lists(st.tuples(outcomes, noise), min_size=1, max_size=10),
)
rules = st.builds(
    lambda replicates, adjusted, early_stop, margin: design(
        replicates, adjusted=adjusted, early_stop=early_stop, margin=margin
    ),
    st.sampled_from((3, 6, 8, 10)), st.booleans(), st.booleans(),
    st.sampled_from((1.0, 4.0, 20.0)),
)
MIRRORED = {
    Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER,
    Verdict.BETTER_BELOW_MARGIN: Verdict.WORSE_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN: Verdict.BETTER_BELOW_MARGIN,
}


def swapped(pair: Pair | HalfPair) -> Pair | HalfPair:
    return msgspec.structs.replace(
        pair, a=pair.b, b=pair.a, position_a=pair.position_b, position_b=pair.position_a,
        **({"failed_a": pair.failed_b, "failed_b": pair.failed_a} if isinstance(pair, HalfPair) else {}),
    )


@settings(max_examples=60)
@given(rows, st.one_of(rules, st.just(open_ended())), st.one_of(st.none(), outcomes))
def test_swapping_the_groups_flips_every_sign_and_verdict(found, rule, survivor):
    pairs = pairs_of([a for a, _ in found], [b for _, b in found])
    gone = lost() if survivor is None else lost((len(pairs), None, survivor))
    gone_back = Lost(replicates=tuple(swapped(half) for half in gone.replicates))
    there = compared(rule, pairs, lost=gone)
    back = compared(rule, tuple(swapped(pair) for pair in pairs), lost=gone_back)
    assert back.verdict is MIRRORED.get(there.verdict, there.verdict)
    assert back.estimate == pytest.approx(-there.estimate, abs=1e-9)
    assert (back.low is None) == (there.low is None)
    if there.low is not None:
        assert (back.low, back.high) == pytest.approx((-there.high, -there.low), rel=1e-9, abs=1e-9)
    assert (back.imputed is None) == (there.imputed is None)
    if there.imputed is not None:
        assert back.imputed.survives == there.imputed.survives
    if (iqm := there.descriptive["iqm"]) is not None:
        turned = back.descriptive["iqm"]
        assert (turned.low, turned.high) == pytest.approx((-iqm.high, -iqm.low), abs=1e-9)


@settings(max_examples=60)
@given(rows, rules, st.randoms(use_true_random=False))
def test_order_of_rows_never_matters_and_no_claim_below_six_pairs(found, rule, random):
    listed = list(pairs_of([a for a, _ in found], [b for _, b in found]))
    result = compared(rule, tuple(listed))
    random.shuffle(listed)
    assert compared(rule, tuple(listed)) == result
    if len(found) < LEAST_PAIRS:
        assert result.verdict not in CLAIMS
    if result.verdict in (Verdict.BETTER, Verdict.WORSE) and result.used == result.course.decided_at:
        assert result.last_look.p <= result.last_look.bound_p
        assert result.low > 0 or result.high < 0
    text = " ".join((result.sentence, result.rule, str(result.level), *result.caveats)).lower()
    for word in ("winner", "none", "nan", "inf ", "  ", "..", "no interval,"):
        assert word not in text


@settings(max_examples=30)
@given(rows, rules)
def test_an_audit_never_makes_a_verdict_stronger(found, rule):
    pairs = pairs_of([a for a, _ in found], [b for _, b in found])
    free, capped = compared(rule, pairs), compared(rule, pairs, findings=(exploded(B),))
    assert capped.unaudited is free.unaudited
    assert capped.verdict is (Verdict.INCONCLUSIVE if free.verdict in CLAIMS else free.verdict)


def test_one_pair_is_no_inference():
    result = compared(design(1), pairs_of([90.0], [10.0]))
    assert result.verdict is Verdict.NO_INFERENCE
    assert "These are two runs. How far apart two runs of one group fall is unknown" in result.sentence
    assert "Nothing follows about the groups" in result.sentence
    assert set(result.descriptive.values()) == {None}
    known = compared(design(1), pairs_of([90.0], [10.0]), run_sd=3.1)
    assert "standard deviation of about 3.10 points (calibration)" in known.sentence


def test_no_pair_is_no_inference():
    result = compared(design(6), ())
    assert result.verdict is Verdict.NO_INFERENCE
    assert result.effect is result.plain is result.estimate is None
    assert "0 of 6 planned pairs" in result.caveats[0]


def test_three_pairs_say_what_three_pairs_can_show():
    result = compared(design(3), pairs_of([75.0, 80.0, 78.0], [70.0, 71.0, 70.7]))
    assert result.verdict is Verdict.NO_INFERENCE
    assert result.sentence.startswith("NO INFERENCE (3 pairs). shaped - simplified = +7.10 points. If the differences")
    assert "The strongest exact result possible with 3 pairs is p = 0.25" in result.sentence
    assert "this assumption cannot be checked with 3 pairs" in result.sentence
    assert "A verdict needs at least 6 pairs" in result.sentence
    assert "To detect 2 points with 80 % power about 7 more pairs" in result.sentence
    assert "Not resolvable within the budget" in result.sentence


@pytest.mark.parametrize("same_settings", [True, False])
def test_equal_records_are_identical_without_a_test(same_settings):
    result = compared(
        design(6), pairs_of(BETTER_A, BETTER_A), same_records=True, same_settings=same_settings
    )
    assert result.verdict is result.unaudited is Verdict.IDENTICAL
    assert ("the same computation" in result.sentence) is same_settings
    assert ("no decision of these runs depended on it. Longer training may" in result.sentence) is not same_settings
    assert result.descriptive["sign_flip"] is result.pairs_needed is result.equivalence is None
    assert result.effect.t is None


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (BETTER_A, "shaped and simplified have equal outcomes in every pair, though their records differ"),
        ((25.39,) * 6, "Every outcome of shaped and simplified is 25.39 %, though their records differ"),
        ((25.39,) * 2, "Every outcome of shaped and simplified is 25.39 %, though their records differ"),
    ],
)
def test_equal_outcomes_of_differing_records_show_no_equality(outcomes, said):
    result = compared(design(len(outcomes)), pairs_of(outcomes, outcomes))
    few = len(outcomes) < 6
    assert result.verdict is (Verdict.NO_INFERENCE if few else Verdict.INCONCLUSIVE)
    assert any(said in caveat and "coarse or saturated" in caveat for caveat in result.caveats)


def test_hosts_that_learnt_nothing_but_one_show_no_equality_either():
    a = (25.39, 25.39, 25.39, 25.78, 25.39, 25.39)
    result = compared(design(6), pairs_of(a, (25.39,) * 6))
    assert result.verdict is result.unaudited is Verdict.INCONCLUSIVE
    assert result.low is result.equivalence is None
    said = "5 of 6 pairs differ by the same amount and fewer than 6 by another: there is no test, no interval"
    assert said in result.sentence
    assert "11 of 12 runs came to 25.39 %, which leaves too little spread" in result.headline


def test_one_equal_pair_is_identical_only_if_its_records_are():
    pair = pairs_of([70.0], [70.0])
    assert compared(design(1), pair, same_records=True).verdict is Verdict.IDENTICAL
    assert compared(design(1), pair).verdict is Verdict.NO_INFERENCE
    assert compared(design(1), pair, same_records=True, findings=(exploded(A),)).verdict is Verdict.NO_INFERENCE


def test_a_cap_holds_for_equal_records_too():
    result = compared(design(6), pairs_of(BETTER_A, BETTER_A), same_records=True, findings=(exploded(A),))
    assert (result.verdict, result.unaudited) == (Verdict.INCONCLUSIVE, Verdict.IDENTICAL)
    assert "The pairs alone would say IDENTICAL, but: The policy's ratios exploded." in result.sentence
    assert not any("saturated" in caveat for caveat in result.caveats)
