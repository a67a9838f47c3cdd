"""Verdict, sentence, headline, interval and --fail-unless never contradict one another, whatever the pairs are."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.comparing import BETTER_A, BETTER_B, A, B, compared, design, lost, open_ended, pairs_of, small

from esper_ab.design.design import Boundary, Futility, extended
from esper_ab.design.pairs_needed import MOST_NAMED
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.pair import Samples
from esper_ab.verdict.requirement import RELATIONS, Requirement, holds
from esper_ab.verdict.vocabulary import Finding, Verdict

UP = (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)
DOWN = (Verdict.WORSE, Verdict.WORSE_BELOW_MARGIN)
SMALL = (Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN, Verdict.EQUIVALENT)
NOMINAL = {(6, 10): (0.0076, 0.0455), (6, 10, 16, 20): (0.0001, 0.003, 0.013, 0.0435), (20,): (0.05,), (8,): (0.05,)}
STOPS = {(6, 10): (0.1, 0.0), (6, 10, 16, 20): (0.02, 0.07, 0.14, 0.0)}
BASELINE = Finding(kind="baseline", weight="caps equivalence", groups=(), sentence="Both are at chance.")


@st.composite
def designs(draw):
    looks, kind = draw(st.sampled_from(sorted(NOMINAL))), draw(st.sampled_from(["looks", "extended", "open-ended"]))
    comparisons, held = draw(st.sampled_from([1, 3])), draw(st.booleans())
    rule = design(20, comparisons, early_stop=draw(st.booleans()), margin=draw(st.sampled_from([0.5, 2.0, 6.0])))
    boundaries = tuple(
        Boundary(open=n, alpha=0.05 / n, nominal_p=tuple(p / n for p in NOMINAL[looks]))
        for n in range(comparisons, 0, -1)
    )
    rule = msgspec.structs.replace(rule, looks=looks, boundaries=boundaries, adjusted=held)
    if len(looks) > 1 and rule.early_stop and draw(st.booleans()):
        rule = msgspec.structs.replace(rule, futility=Futility(power=0.8, nominal_p=STOPS[looks]))
    if kind == "looks":
        return rule
    if kind == "extended":
        return extended(rule, looks[-1])
    return msgspec.structs.replace(rule, looks=(), boundaries=(), anytime_after=0, futility=None)


@st.composite
def differences(draw):
    """Of up to 26 pairs: shifted, reversed after a while, with crashes, with ties."""
    rng, n = np.random.default_rng(draw(st.integers(0, 10**6))), draw(st.integers(1, 26))
    d = draw(st.sampled_from([0.0, 0.3, 1.0, 4.0])) + draw(st.sampled_from([0.05, 0.5, 3.0])) * rng.standard_normal(n)
    d[draw(st.sampled_from([6, 10, 16, 26])) :] *= draw(st.sampled_from([1.0, -3.0, 20.0]))
    d[rng.random(n) < draw(st.sampled_from([0.0, 0.1]))] -= 25.0
    grain = draw(st.sampled_from([0.0, 0.257, 2.0]))
    return np.round(d / grain) * grain if grain else d


def judged(rule, d, gone, near_baseline):
    missing = {r for r in gone if r < len(d)}
    kept = [r for r in range(len(d)) if r not in missing]
    halves = lost(*((r, None, 60.0) if r % 3 else (r, 60.0 + float(d[r]), None) for r in sorted(missing)))
    pairs = pairs_of([60.0 + d[r] for r in kept], [60.0] * len(kept), kept)
    return compared(rule, pairs, lost=halves, complete=len(d), findings=(BASELINE,) if near_baseline else ())


def printed(text):
    """Interval of a sentence: "95 % repeated interval -0.40 to +3.20"."""
    low, high = re.search(r"interval (-?\+?[0-9.]+) to (-?\+?[0-9.]+)", text).groups()
    return float(low), float(high)


REVERSED = np.array([8.0, 8.5, 7.5, 8.2, 7.8, 8.1, -24.0, -26.0, -25.0, -23.0])


@settings(max_examples=150, deadline=None)
@given(designs(), differences(), st.sets(st.integers(0, 25), max_size=4), st.booleans())
@example(design(10, early_stop=False), REVERSED, set(), False)
@example(design(20), np.linspace(-1.9, 3.0, 20), set(), False)
@example(design(10, futility=Futility(power=0.8, nominal_p=(0.1, 0.0))), np.linspace(-1.0, 1.0, 10), set(), False)
@example(design(20), np.linspace(-1.0, 1.0, 20), set(), True)
def test_nothing_that_is_said_contradicts_another(rule, d, gone, near_baseline):
    result = judged(rule, d, gone, near_baseline)
    numbers_agree(result)
    if result.verdict in SMALL:
        assert abs(result.plain.mean) < rule.margin or rule.adjusted
        assert not near_baseline


@st.composite
def successes(draw):
    """Up to 26 pairs that came to 0 or 1, of two rates, with a correlation."""
    rng, n = np.random.default_rng(draw(st.integers(0, 10**6))), draw(st.integers(1, 26))
    one, same = draw(st.sampled_from([1.0, 100.0])), rng.random(n) < draw(st.sampled_from([0.0, 0.9]))
    luck = rng.random((2, n))
    luck[1, same] = luck[0, same]
    rates = [[draw(st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0]))] for _ in range(2)]
    return one * (luck < rates)


@settings(max_examples=120, deadline=None)
@given(designs(), successes(), st.booleans())
def test_neither_does_what_is_said_of_runs_that_are_0_or_1(rule, ends, near_baseline):
    one = ends.max() or 1.0
    unit = msgspec.structs.replace(rule.outcome, unit="%" if one == 100.0 else "", low=None, high=None)
    rule = msgspec.structs.replace(
        rule, margin=rule.margin * one / 8.0, measures=msgspec.structs.replace(rule.measures, outcome=unit)
    )
    result = compared(rule, pairs_of(*ends), findings=(BASELINE,) if near_baseline else ())
    assert result.proportions is not None
    numbers_agree(result)
    if result.verdict in UP + DOWN and result.last_look.bound_p is not None:
        assert result.effect.p <= result.last_look.bound_p
    told = re.search(r"in (\d+) of (\d+) pairs(?: \((\d+) tied\))?", result.headline)
    if told:
        ahead, of, ties = (int(number or 0) for number in told.groups())
        behind = sum((a - b) * result.estimate < 0 for a, b in ends.T[: result.used])
        assert ahead + ties + behind == of == result.used


@settings(max_examples=80, deadline=None)
@given(differences(), st.integers(1, 26), st.booleans())
def test_neither_does_what_is_said_of_runs_that_form_no_pairs(d, other, near_baseline):
    b = 60.0 + np.random.default_rng(other).standard_normal(other)
    rule = msgspec.structs.replace(
        design(20, test="welch", positions=1), looks=(26,)
    )
    result = compared(rule, Samples(a=tuple(60.0 + d), b=tuple(b)), complete=26,
        findings=(BASELINE,) if near_baseline else ())
    numbers_agree(result)
    said = " ".join((result.headline, result.sentence, result.rule, *result.caveats))
    assert not re.search(r"\bpairs?\b", said)
    assert result.used == min(len(d), other)


def numbers_agree(result):
    """The verdict is that of the interval, in every sentence."""
    verdict, margin, numbers = result.verdict, result.question.design.margin, 0.005 + 1e-9
    if verdict in UP:
        assert result.estimate > 0.0
        assert result.low > 0.0
        assert printed(result.sentence)[0] >= -numbers
        assert result.headline.startswith(f"{A} is better than {B}")
    if verdict in DOWN:
        assert result.estimate < 0.0
        assert result.high < 0.0
        assert printed(result.sentence)[1] <= numbers
        assert result.headline.startswith(f"{A} is worse than {B}")
    if verdict in SMALL:
        assert -margin < result.low <= result.estimate <= result.high < margin
        low, high = printed(result.sentence)
        assert -margin - numbers < low <= high < margin + numbers
        assert result.used >= LEAST_EQUIVALENCE_PAIRS
    if result.course.decision == "futile":
        assert verdict is Verdict.INCONCLUSIVE
        low, high = re.search(r"futility interval (\S+) to (\S+) lies inside", result.sentence).groups()
        assert -margin < float(low) <= float(high) < margin
        assert "stopped for futility" in result.headline
    agrees(result)


def agrees(result):
    """The requirements hold only where verdict, estimate and interval say so."""
    margin, verdict = result.question.design.margin, result.verdict
    for left, right, sign in ((A, B, 1.0), (B, A, -1.0)):
        held = {one for one in RELATIONS if holds(Requirement(left=left, relation=one, right=right), result)}
        low = None if result.low is None else (result.low if sign > 0 else -result.high)
        assert ("better-than" in held) == (verdict in (UP if sign > 0 else DOWN))
        assert ("worse-than" in held) == (verdict in (DOWN if sign > 0 else UP))
        assert ("equivalent-to" in held) == (verdict in SMALL)
        if "better-than" in held:
            assert sign * result.estimate > 0.0
        if "not-worse-than" in held:
            assert low > -margin
            assert result.used >= LEAST_EQUIVALENCE_PAIRS or "better-than" in held
        assert ("not-worse-than" in held) or not held & {"better-than", "equivalent-to"}


@pytest.mark.parametrize(("looks", "number"), [((6,), "1 of 1"), ((6, 10), "1 of 2"), ((5, 8), "1 of 2")])
def test_a_comparison_in_progress_names_the_look_that_it_waits_for(looks, number):
    rule = msgspec.structs.replace(design(6), looks=looks)
    result = compared(rule, pairs_of(BETTER_A[:3], BETTER_B[:3]))
    assert f"It can be decided after seed {looks[0]} (look {number}), not before." in result.sentence


def test_nothing_is_said_of_looks_none_of_which_can_decide():
    rule = msgspec.structs.replace(design(6), looks=(5,))
    assert "It can be decided" not in compared(rule, pairs_of(BETTER_A[:3], BETTER_B[:3])).sentence


@pytest.mark.parametrize(
    ("pairs", "high", "said"),
    [
        (100, MOST_NAMED, "about 94 more pairs would be needed (80 % range 2 to 9994)"),
        (100, MOST_NAMED + 1, "about 94 more pairs would be needed (80 % range 2 to more than 10000)"),
        (MOST_NAMED, MOST_NAMED + 1, "about 9994 more pairs would be needed (80 % range 2 to more than 10000)"),
        (MOST_NAMED + 1, MOST_NAMED + 1, "more than 10000 more pairs would be needed."),
    ],
)
def test_pairs_beyond_ten_thousand_are_not_counted(pairs, high, said):
    wide = compared(design(6), pairs_of((71.0, 90.0, 70.5, 70.1, 71.8, 95.0), BETTER_B))
    needed = msgspec.structs.replace(wide.pairs_needed, pairs=pairs, low=8, high=high)
    assert said in replace(wide, pairs_needed=needed, pairs_anew=None).sentence


def test_as_many_positions_as_pairs_leave_nothing_to_test():
    turned = [
        msgspec.structs.replace(pair, position_a=n, position_b=(n + 1) % 6)
        for n, pair in enumerate(pairs_of(BETTER_A, BETTER_B))
    ]
    result = compared(design(6, adjusted=True, positions=6), turned)
    said = "shaped - simplified = +4.48 points, no adjusted paired t; at this bound 6 pairs give no interval."
    assert said in result.sentence
    assert result.verdict is Verdict.INCONCLUSIVE


# Lost runs in a comparison: counted, imputed against the claim, said; and what the verdict is then.


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
