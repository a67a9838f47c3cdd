"""The course of comparisons over the looks: what each look decides, alpha passed on, and rules that always hold."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.looks import AB, AC, BC, DULL, NOMINAL, anytime, design, made, situations, spread

from esper_ab.design.design import Boundary, Contrast, Futility, extended
from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.pair import Pair
from esper_ab.verdict.follow import courses_of


def test_no_look_is_taken_before_its_replicates_are_complete():
    course = courses_of(design(), {AB: made(spread(20, 9.0))}, 5)[AB]
    assert (course.looks, course.decision, course.decided_at, course.direction) == ((), "open", None, 0)
    assert not course.finished


def test_a_large_difference_crosses_at_the_first_look_and_stops():
    course = courses_of(design(), {AB: made(spread(20, 9.0))}, 20)[AB]
    (look,) = course.looks
    assert (course.decision, course.decided_at, course.direction, course.finished) == ("crossed", 6, 1, True)
    assert (look.replicates, look.pairs, look.bound_p, look.alpha) == (6, 6, NOMINAL[1][0], 0.05)
    assert look.p <= look.bound_p
    assert 0.0 < look.low < look.mean < look.high


def test_without_early_stop_every_look_is_taken_and_the_decision_stays():
    d = [*spread(6, 9.0), *[-40.0, 30.0] * 7]
    course = courses_of(design(early_stop=False), {AB: made(d)}, 20)[AB]
    assert [look.replicates for look in course.looks] == [6, 10, 14, 20]
    assert (course.decision, course.decided_at, course.direction) == ("crossed", 6, 1)
    assert not course.looks[-1].crossed


def test_no_difference_ends_open():
    course = courses_of(design(), {AB: made(DULL[:20])}, 20)[AB]
    assert (course.decision, course.finished, len(course.looks)) == ("open", True, 4)
    assert not courses_of(design(), {AB: made(DULL[:14])}, 14)[AB].finished


def test_a_difference_below_the_margin_that_crosses_is_crossed():
    course = courses_of(design(), {AB: made(spread(20, 1.0, 0.1))}, 20)[AB]
    assert (course.decision, course.looks[0].equivalent) == ("crossed", False)


def three(ab, ac, bc=None):
    return {AB: made(ab), AC: made(ac), BC: made(bc or DULL[:20])}


def scaled_to_p(p, n=20, sign=1.0):
    """n differences whose adjusted t at look n has just this p."""
    d = np.array(spread(n, 0.0))
    side = np.array([1.0, -1.0] * (n // 2))
    d = d - d.mean() - side * (d @ side) / n
    se = math.sqrt(float(d @ d) / (n - 2) / n)
    return (d + sign * stats.t.isf(p / 2, n - 2) * se).tolist()


def test_alpha_is_passed_on_and_the_open_ones_are_tested_again():
    look = {"looks": (20,), "margin": 0.001}
    # At 0.05/3, 0.05/2, 0.05: each falls only because the one before it did.
    three_steps = three(scaled_to_p(0.015), scaled_to_p(0.022, sign=-1.0), scaled_to_p(0.049))
    courses = courses_of(design((AB, AC, BC), **look), three_steps, 20)
    assert [courses[c].decision for c in (AB, AC, BC)] == ["crossed"] * 3
    assert [courses[c].direction for c in (AB, AC, BC)] == [1, -1, 1]
    assert [courses[c].looks[0].bound_p for c in (AB, AC, BC)] == [0.05 / 3, 0.05 / 2, 0.05]
    assert [courses[c].looks[0].alpha for c in (AB, AC, BC)] == [0.05 / 3, 0.05 / 2, 0.05]
    no_first = three(scaled_to_p(0.018), scaled_to_p(0.024), scaled_to_p(0.049))
    assert {c.decision for c in courses_of(design((AB, AC, BC), **look), no_first, 20).values()}.isdisjoint({"crossed"})


@given(st.lists(st.floats(1e-9, 0.2), min_size=3, max_size=3), st.sampled_from([0.001, 0.3, 1.0]))
@settings(max_examples=50)
def test_at_a_single_look_only_differences_beyond_the_margin_pass_alpha_on(ps, margin):
    """Of a smaller one it may still be said that it is within the margin: its share is not free."""
    data = {contrast: made(scaled_to_p(p)) for contrast, p in zip((AB, AC, BC), ps, strict=True)}
    courses = courses_of(design((AB, AC, BC), looks=(20,), margin=margin), data, 20)
    shares = 3
    for p, contrast in sorted(zip(ps, (AB, AC, BC), strict=True), key=lambda item: item[0]):
        look = courses[contrast].looks[0]
        assert look.bound_p == 0.05 / look_share(look)
        if courses[contrast].decision == "crossed":
            assert look_share(look) >= shares
            shares -= look.low >= margin
        else:
            assert look_share(look) == shares
            assert p > 0.99999 * 0.05 / shares


def look_share(look):
    return round(0.05 / look.alpha)


def test_what_may_still_be_called_small_passes_nothing_on():
    data = {AB: made(spread(20, 1.5, 0.5)), AC: made(scaled_to_p(0.03))}
    courses = courses_of(design((AB, AC), looks=(20,)), data, 20)
    assert (courses[AB].decision, courses[AB].looks[0].small) == ("crossed", True)
    assert (courses[AC].looks[0].crossed, courses[AC].looks[0].bound_p) == (False, 0.025)


def test_simultaneous_intervals_and_what_concerns_the_margin_stay_at_the_first_share():
    data = {AB: made(spread(20, 30.0)), AC: made(scaled_to_p(0.03))}
    look = courses_of(design((AB, AC), looks=(20,)), data, 20)[AC].looks[0]
    assert (look.alpha, look.bound_p) == (0.05, 0.05)
    half = (look.high - look.low) / 2 / stats.t.isf(0.05 / 2, 18) * stats.t.isf(0.025 / 2, 18)
    assert look.simultaneous_low == pytest.approx(look.mean - half)
    assert look.simultaneous_high == pytest.approx(look.mean + half)
    edge = look.simultaneous_high
    for margin, small in ((edge * 1.0001, True), (edge * 0.9999, False)):
        course = courses_of(design((AB, AC), looks=(20,), margin=margin), data, 20)[AC]
        assert (course.decision, course.looks[0].small) == ("crossed", small)


def test_alpha_is_passed_on_to_later_looks():
    data = {AB: made(spread(20, 30.0)), AC: made(DULL[:20])}
    courses = courses_of(design((AB, AC)), data, 20)
    assert courses[AB].decided_at == 6
    assert courses[AB].looks[0].bound_p == NOMINAL[2][0]
    assert [look.bound_p for look in courses[AC].looks] == list(NOMINAL[1])  # the first one was tested again
    going_on = courses_of(design((AB, AC), early_stop=False), data, 20)[AB]
    assert [look.bound_p for look in going_on.looks] == list(NOMINAL[2])  # its own share stays what it was


def test_an_equivalent_comparison_stops_and_passes_nothing_on():
    data = {AB: made(spread(30, 0.0, 0.1)), AC: made(DULL[:30])}
    courses = courses_of(anytime(comparisons=(AB, AC)), data, 30)
    assert (courses[AB].decision, len(courses[AB].looks)) == ("equivalent", 25)
    assert {look.alpha for look in courses[AC].looks} == {0.025}


def test_no_interim_look_calls_a_difference_smaller_than_the_margin():
    """A group that collapses rarely looks small until a run has collapsed; later looks have more runs to see it."""
    equal = courses_of(design(looks=(16, 20)), {AB: made(spread(20, 0.0, 0.1))}, 20)[AB]
    assert (equal.decision, equal.decided_at) == ("equivalent", 20)
    above = courses_of(design(looks=(16, 20), early_stop=False), {AB: made(spread(20, 1.0, 0.1))}, 20)[AB]
    assert [(look.crossed, look.small) for look in above.looks] == [(True, False), (True, True)]


def centred(n=20, sd=1.0):
    """n differences of mean 0 and residual SD `sd` beside the sides, so that their intervals are known."""
    d = np.array(spread(n, 0.0))
    side = np.array([1.0, -1.0] * (n // 2))
    d = d - d.mean() - side * (d @ side) / n
    return (d * sd / math.sqrt(float(d @ d) / (n - 2))).tolist()


def test_equivalence_is_tested_at_the_first_share_whatever_was_passed_on():
    """Alpha freed by true differences is no license for equivalence: those hypotheses are another family."""
    half = stats.t.isf(0.05 / 3, 18) / math.sqrt(20)  # at alpha / 3, of an SD of 1
    assert half > 1.1 * stats.t.isf(0.05, 18) / math.sqrt(20)
    far = {AB: made(spread(20, 50.0)), AC: made(spread(20, -50.0)), BC: made(centred())}
    for margin, decision in ((half * 1.001, "equivalent"), (half * 0.999, "open")):
        found = courses_of(design((AB, AC, BC), looks=(20,), margin=margin), far, 20)
        assert [found[c].decision for c in (AB, AC, BC)] == ["crossed", "crossed", decision]
        (look,) = found[BC].looks
        assert (look.bound_p, look.equivalence_p) == (0.05, 0.05 / 3)
        assert (look.equivalence_low, look.equivalence_high) == pytest.approx((-half, half))
        assert look.high == pytest.approx(stats.t.isf(0.025, 18) / math.sqrt(20))  # that has grown with its share


def test_equivalence_asks_for_the_first_evidence_too_when_looked_at_any_time():
    low, high = anytime_interval(0.0, 1.0 / math.sqrt(26), 24, 26.0, 60.0 / 2.0)
    far = {AB: made(spread(26, 50.0)), AC: made(spread(26, -50.0)), BC: made(centred(26))}
    for margin, decision in ((high * 1.001, "equivalent"), (high * 0.999, "open")):
        known = anytime(comparisons=(AB, AC, BC), anytime_after=25, margin=margin)
        look = courses_of(known, far, 26)[BC].looks[-1]
        assert (look.bound_e, look.equivalence_p) == (20.0, None)
        assert (look.equivalence_low, look.equivalence_high) == pytest.approx((low, high))
        assert courses_of(known, far, 26)[BC].decision == decision


@pytest.mark.parametrize(
    ("mean", "looks"), [(0.0, (15,)), (1e3, (6,))]  # as equal as can be, as different as can be
)
def test_lost_pairs_make_a_look_smaller_and_too_few_decide_nothing(mean, looks):
    """Six for a difference, fifteen for equivalence."""
    rule, d = design(looks=looks), spread(20, mean, 1e-3)
    assert courses_of(rule, {AB: made(d)}, looks[0])[AB].decided_at == looks[0]
    d[1] = None
    course = courses_of(rule, {AB: made(d)}, looks[0])[AB]
    assert [look.pairs for look in course.looks] == [looks[0] - 1]
    assert course.looks[0].p is not None
    assert course.looks[0].low is not None
    assert course.looks[0].equivalence_low is not None
    assert course.decision == "open"


def test_no_group_leaves_for_an_equivalence_of_less_than_fifteen_pairs():
    """Six runs of a group that collapses in 15 % of them show no collapse in 38 % of experiments."""
    data = {AB: made(spread(20, 0.0, 0.01))}
    nominal = (Boundary(open=1, alpha=0.05, nominal_p=(0.01, 0.01, 0.01, 0.04)),)
    course = courses_of(design(boundaries=nominal), data, 20)[AB]
    assert (course.decision, course.decided_at, len(course.looks)) == ("equivalent", 20, 4)
    assert all(-2.0 < look.equivalence_low < look.equivalence_high < 2.0 for look in course.looks[1:])


def test_no_pairs_at_all():
    course = courses_of(design(), {}, 20)[AB]
    assert (course.decision, course.finished, len(course.looks)) == ("open", True, 4)
    assert course.looks[0].mean is None


def test_open_ended_shares_evidence_among_comparisons():
    data = {AB: made(spread(30, 30.0)), AC: made(DULL[:30])}
    courses = courses_of(anytime(comparisons=(AB, AC)), data, 30)
    assert courses[AB].looks[-1].bound_e == 40.0
    assert {look.bound_e for look in courses[AC].looks[5:]} == {20.0}
    assert courses[AC].looks[4].bound_e == 40.0


@pytest.mark.parametrize(
    ("mean", "decision", "least"), [(0.0, "equivalent", 25), (1.0, "crossed", 6), (1e3, "crossed", 6)]
)
def test_open_ended_needs_six_pairs_and_twenty_five_for_equivalence(mean, decision, least):
    course = courses_of(anytime(), {AB: made(spread(40, mean, 1e-3))}, 40)[AB]
    assert (course.decided_at, course.decision) == (least, decision)
    d = spread(40, mean, 1e-3)
    d[2] = None
    assert courses_of(anytime(), {AB: made(d)}, 40)[AB].decided_at == least + 1


def test_an_extended_plan_asks_for_more():
    d = spread(40, 0.55)
    planned = courses_of(design(), {AB: made(d)}, 20)[AB]
    longer = extended(design(), 20)
    course = courses_of(longer, {AB: made(d)}, 40)[AB]
    assert course.looks[: len(planned.looks)] == planned.looks
    if planned.decision == "open":
        assert {look.bound_e for look in course.looks[4:]} == {100.0}
        assert course.looks[4].replicates == 21
    decided = courses_of(longer, {AB: made(spread(40, 9.0))}, 40)[AB]
    assert decided.decided_at == 6


values = st.floats(0.0, 100.0).map(lambda x: round(x, 2))


@given(situations())
@settings(max_examples=60)
def test_swapping_groups_flips_the_direction(situation):
    known, pairs, complete = situation
    turned = msgspec.structs.replace(known, comparisons=tuple(Contrast(a=c.b, b=c.a) for c in known.comparisons))
    other = {
        Contrast(a=c.b, b=c.a): [
            Pair(replicate=p.replicate, a=p.b, b=p.a, position_a=p.position_b, position_b=p.position_a) for p in rows
        ]
        for c, rows in pairs.items()
    }
    there, back = courses_of(known, pairs, complete), courses_of(turned, other, complete)
    for contrast, course in there.items():
        mirror = back[Contrast(a=contrast.b, b=contrast.a)]
        assert (course.decision, course.decided_at) == (mirror.decision, mirror.decided_at)
        assert course.direction == -mirror.direction
        for one, two in zip(course.looks, mirror.looks, strict=True):
            assert (one.p is None, one.e is None) == (two.p is None, two.e is None)
            assert (one.p or 0.0, one.e or 0.0) == pytest.approx((two.p or 0.0, two.e or 0.0), rel=1e-6)
            if one.low is not None:
                assert (one.low, one.high) == (pytest.approx(-two.high), pytest.approx(-two.low))


@given(situations(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_pairs_is_irrelevant_and_numbers_repeat(situation, random):
    known, pairs, complete = situation
    shuffled = {contrast: random.sample(rows, len(rows)) for contrast, rows in pairs.items()}
    assert courses_of(known, pairs, complete) == courses_of(known, shuffled, complete)


@given(situations(), st.integers(0, 26))
@settings(max_examples=60)
def test_more_replicates_never_take_back_a_look(situation, later):
    known, pairs, complete = situation
    if known.anytime_after != 0:
        later = max(later, complete)
    before, after = courses_of(known, pairs, min(complete, later)), courses_of(known, pairs, max(complete, later))
    for contrast, course in before.items():
        assert after[contrast].looks[: len(course.looks)] == course.looks
        if course.decision != "open":
            assert (after[contrast].decision, after[contrast].decided_at) == (course.decision, course.decided_at)
            assert after[contrast].finished or not known.early_stop


@given(situations())
@settings(max_examples=60)
def test_what_is_not_yet_complete_is_not_looked_at(situation):
    known, pairs, complete = situation
    cut = {contrast: [pair for pair in rows if pair.replicate < complete] for contrast, rows in pairs.items()}
    assert courses_of(known, pairs, complete) == courses_of(known, cut, complete)


STOPS = Futility(power=0.8, nominal_p=(0.02, 0.07, 0.14, 0.0))
NEAR = [0.3, -0.3, 0.5, -0.5, 0.1, -0.1, 0.4, -0.4, 0.2, -0.2] * 2  # of 6 pairs the 96 % interval lies within 2 points


def test_a_look_that_makes_the_margin_unlikely_stops_for_futility_and_claims_nothing():
    course = courses_of(design(futility=STOPS), {AB: made(NEAR)}, 20)[AB]
    (look,) = course.looks
    assert (course.decision, course.decided_at, course.direction, course.finished) == ("futile", 6, 0, True)
    assert (course.standing, course.claimed, look.crossed, look.equivalent) == ("futile", False, False, False)
    assert look.futility_p == 0.02
    assert -2.0 < look.futility_low < look.futility_high < 2.0
    assert look.low < look.futility_low
    assert look.high > look.futility_high


def test_without_the_stops_the_same_pairs_end_equivalent():
    course = courses_of(design(), {AB: made(NEAR)}, 20)[AB]
    assert (course.decision, course.decided_at) == ("equivalent", 20)
    assert {look.futility_p for look in course.looks} == {None}


def test_fewer_than_six_pairs_stop_nothing():
    course = courses_of(design(futility=STOPS), {AB: made([None, *NEAR[1:]])}, 10)[AB]
    assert [look.futile for look in course.looks] == [False, True]
    assert course.decided_at == 10


def test_what_was_stopped_for_futility_stays_so_whatever_comes_later():
    """Pairs that exist because other groups go on, and an extension, change nothing."""
    later = [*NEAR[:6], *spread(34, 30.0)]
    for rule in (design((AB, AC), futility=STOPS), extended(design((AB, AC), futility=STOPS), 20)):
        found = courses_of(rule, {AB: made(later), AC: made([6.0, -8.0, -6.0, 8.0] * 10)}, 40)
        assert (found[AB].decision, found[AB].decided_at, len(found[AB].looks)) == ("futile", 6, 1)
        assert found[AC].decision == "open"


def test_a_stop_for_futility_passes_no_alpha_on():
    data = {AB: made(NEAR), AC: made(spread(20, 1.1, 1.2))}
    with_stop, without = (courses_of(design((AB, AC), futility=one), data, 20) for one in (STOPS, None))
    assert with_stop[AB].decision == "futile"
    assert {look.alpha for look in with_stop[AC].looks} == {0.025}
    both = list(zip(with_stop[AC].looks, without[AC].looks, strict=False))
    assert both
    assert all(look.bound_p == same.bound_p for look, same in both)


@settings(max_examples=80, deadline=None)
@given(situations())
def test_stops_for_futility_never_make_a_claim_that_would_not_be_made_without_them(situation):
    """Non-binding: each claim is one of the same rule without stops, at the same look and bound; some are not made."""
    rule, pairs, complete = situation
    if len(rule.looks) < 2 or not rule.early_stop:
        return
    stopping = msgspec.structs.replace(rule, futility=STOPS)
    plain, stopped = courses_of(rule, pairs, complete), courses_of(stopping, pairs, complete)
    for contrast, course in stopped.items():
        for look, same in zip(course.looks, plain[contrast].looks, strict=False):
            assert look.alpha <= same.alpha  # what stopped cannot pass its share on
            if look.alpha == same.alpha:
                assert (look.crossed, look.equivalent, look.low) == (same.crossed, same.equivalent, same.low)
        if course.decision == "futile":
            last = course.looks[-1]
            assert last.replicates < rule.looks[-1]
            assert -rule.margin < last.futility_low <= last.futility_high < rule.margin


def test_a_look_whose_pairs_all_stand_on_one_side_decides_nothing_and_a_later_one_does():
    """As when the replicates that were lost are those of the other side: what the lanes do could be all of it."""
    gone = {1, 3, 5, 7, 9, 11, 13}
    pairs = [pair for pair in made(spread(20, 9.0)) if pair.replicate not in gone]
    for adjusted in (True, False):
        rule = design(adjusted=adjusted)
        course = courses_of(rule, {AB: pairs}, 14)[AB]
        assert [(look.pairs, look.crossed) for look in course.looks] == [(3, False), (5, False), (7, False)]
        assert (course.looks[-1].mean, course.looks[-1].low, course.decision) == (None, None, "open")
        course = courses_of(rule, {AB: pairs}, 20)[AB]
        assert (course.decision, course.decided_at) == ("crossed", 20)
        free = msgspec.structs.replace(rule, adjusted=False, positions_matter=False)
        drawn = msgspec.structs.replace(rule, adjusted=False, positions_drawn=True)
        for noise in (free, drawn):
            last = courses_of(noise, {AB: pairs}, 14)[AB].looks[-1]
            assert (last.mean > 8.0, last.crossed) == (True, True)


def test_without_early_stop_a_decision_ends_nothing_before_the_last_look():
    """Pairs to come may take it out of the last look, or bring it back."""
    rule = design(early_stop=False, adjusted=False)
    there = [3.0, 3.2, 2.9, 3.1, 3.05, 2.95, -6.0, -4.0, -7.0, -2.0]
    course = courses_of(rule, {AB: made(there)}, 10)[AB]
    assert (course.decision, course.standing, course.finished) == ("crossed", "open", False)
    assert courses_of(rule, {AB: made(there * 2)}, 20)[AB].finished
    assert courses_of(design(adjusted=False), {AB: made(there)}, 10)[AB].finished
