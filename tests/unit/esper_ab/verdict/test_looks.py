"""The course of comparisons over the looks: what each look decides, alpha passed on, and rules that always hold."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.looks import AB, AC, BC, DULL, NOMINAL, design, made, spread

from esper_ab.design.design import Boundary, Contrast, extended
from esper_ab.stats.anytime_t import anytime_interval, log_evidence
from esper_ab.stats.pair import Pair
from esper_ab.verdict.looks import follow


def p_of(look):
    return [look.bound_p, look.p, look.crossed, look.equivalent]


def test_no_look_is_taken_before_its_replicates_are_complete():
    course = follow(design(), {AB: made(spread(20, 9.0))}, 5)[AB]
    assert (course.looks, course.decision, course.decided_at, course.direction) == ((), "open", None, 0)
    assert not course.finished


def test_a_large_difference_crosses_at_the_first_look_and_stops():
    course = follow(design(), {AB: made(spread(20, 9.0))}, 20)[AB]
    (look,) = course.looks
    assert (course.decision, course.decided_at, course.direction, course.finished) == ("crossed", 6, 1, True)
    assert (look.replicates, look.pairs, look.bound_p, look.alpha) == (6, 6, NOMINAL[1][0], 0.05)
    assert look.p <= look.bound_p
    assert 0.0 < look.low < look.mean < look.high


def test_the_numbers_of_a_look_are_those_of_the_adjusted_t():
    d = spread(14, 1.0, 2.0)
    course = follow(design(), {AB: made(d)}, 14)[AB]
    look = course.looks[2]
    x = np.column_stack([np.ones(14), np.array([1.0, -1.0] * 7)])
    solution, residual, _, _ = np.linalg.lstsq(x, np.array(d), rcond=None)
    se = math.sqrt(float(residual[0]) / 12 / 14)
    assert look.mean == pytest.approx(solution[0], rel=1e-9)
    assert look.p == pytest.approx(2 * stats.t.sf(abs(solution[0]) / se, 12), rel=1e-9)
    half = stats.t.isf(NOMINAL[1][2] / 2, 12) * se  # the interval repeats the boundary, not alpha
    assert (look.low, look.high) == (pytest.approx(solution[0] - half), pytest.approx(solution[0] + half))


def test_without_early_stop_every_look_is_taken_and_the_decision_stays():
    d = [*spread(6, 9.0), *[-40.0, 30.0] * 7]
    course = follow(design(early_stop=False), {AB: made(d)}, 20)[AB]
    assert [look.replicates for look in course.looks] == [6, 10, 14, 20]
    assert (course.decision, course.decided_at, course.direction) == ("crossed", 6, 1)
    assert not course.looks[-1].crossed


def test_no_difference_ends_open():
    course = follow(design(), {AB: made(DULL[:20])}, 20)[AB]
    assert (course.decision, course.finished, len(course.looks)) == ("open", True, 4)
    assert not follow(design(), {AB: made(DULL[:14])}, 14)[AB].finished


def test_equivalence_is_the_interval_at_twice_the_nominal_p():
    data = {AB: made(spread(20, 0.3, 2.6))}
    (look,) = follow(design(looks=(20,)), data, 20)[AB].looks
    half = (look.high - look.low) / 2 / stats.t.isf(look.bound_p / 2, 18) * stats.t.isf(look.bound_p, 18)
    edge = abs(look.mean) + half
    assert edge < max(-look.low, look.high)
    for margin, decision in ((edge * 1.0001, "equivalent"), (edge * 0.9999, "open")):
        course = follow(design(looks=(20,), margin=margin), data, 20)[AB]
        assert (course.decision, course.direction) == (decision, 0)
        assert course.decided_at == (20 if decision == "equivalent" else None)


def test_a_difference_below_the_margin_that_crosses_is_crossed():
    course = follow(design(), {AB: made(spread(20, 1.0, 0.1))}, 20)[AB]
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
    courses = follow(design((AB, AC, BC), **look), three_steps, 20)
    assert [courses[c].decision for c in (AB, AC, BC)] == ["crossed"] * 3
    assert [courses[c].direction for c in (AB, AC, BC)] == [1, -1, 1]
    assert [courses[c].looks[0].bound_p for c in (AB, AC, BC)] == [0.05 / 3, 0.05 / 2, 0.05]
    assert [courses[c].looks[0].alpha for c in (AB, AC, BC)] == [0.05 / 3, 0.05 / 2, 0.05]
    no_first = three(scaled_to_p(0.018), scaled_to_p(0.024), scaled_to_p(0.049))
    assert {c.decision for c in follow(design((AB, AC, BC), **look), no_first, 20).values()}.isdisjoint({"crossed"})


@given(st.lists(st.floats(1e-9, 0.2), min_size=3, max_size=3), st.sampled_from([0.001, 0.3, 1.0]))
@settings(max_examples=50)
def test_at_a_single_look_only_differences_beyond_the_margin_pass_alpha_on(ps, margin):
    """Of a smaller one it may still be said that it is within the margin: its share is not free."""
    data = {contrast: made(scaled_to_p(p)) for contrast, p in zip((AB, AC, BC), ps, strict=True)}
    courses = follow(design((AB, AC, BC), looks=(20,), margin=margin), data, 20)
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
    courses = follow(design((AB, AC), looks=(20,)), data, 20)
    assert (courses[AB].decision, courses[AB].looks[0].small) == ("crossed", True)
    assert (courses[AC].looks[0].crossed, courses[AC].looks[0].bound_p) == (False, 0.025)


def test_simultaneous_intervals_and_what_concerns_the_margin_stay_at_the_first_share():
    data = {AB: made(spread(20, 30.0)), AC: made(scaled_to_p(0.03))}
    look = follow(design((AB, AC), looks=(20,)), data, 20)[AC].looks[0]
    assert (look.alpha, look.bound_p) == (0.05, 0.05)
    half = (look.high - look.low) / 2 / stats.t.isf(0.05 / 2, 18) * stats.t.isf(0.025 / 2, 18)
    assert look.simultaneous_low == pytest.approx(look.mean - half)
    assert look.simultaneous_high == pytest.approx(look.mean + half)
    edge = look.simultaneous_high
    for margin, small in ((edge * 1.0001, True), (edge * 0.9999, False)):
        course = follow(design((AB, AC), looks=(20,), margin=margin), data, 20)[AC]
        assert (course.decision, course.looks[0].small) == ("crossed", small)


def test_alpha_is_passed_on_to_later_looks():
    data = {AB: made(spread(20, 30.0)), AC: made(DULL[:20])}
    courses = follow(design((AB, AC)), data, 20)
    assert courses[AB].decided_at == 6
    assert courses[AB].looks[0].bound_p == NOMINAL[2][0]
    assert [look.bound_p for look in courses[AC].looks] == list(NOMINAL[1])  # the first one was tested again
    going_on = follow(design((AB, AC), early_stop=False), data, 20)[AB]
    assert [look.bound_p for look in going_on.looks] == list(NOMINAL[2])  # its own share stays what it was


def test_an_equivalent_comparison_stops_and_passes_nothing_on():
    data = {AB: made(spread(20, 0.0, 0.1)), AC: made(DULL[:20])}
    courses = follow(design((AB, AC), looks=(16, 20)), data, 20)
    assert (courses[AB].decision, len(courses[AB].looks)) == ("equivalent", 1)
    assert [look.alpha for look in courses[AC].looks] == [0.025] * 2


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
        found = follow(design((AB, AC, BC), looks=(20,), margin=margin), far, 20)
        assert [found[c].decision for c in (AB, AC, BC)] == ["crossed", "crossed", decision]
        (look,) = found[BC].looks
        assert (look.bound_p, look.equivalence_p) == (0.05, 0.05 / 3)
        assert (look.equivalence_low, look.equivalence_high) == pytest.approx((-half, half))
        assert look.high == pytest.approx(stats.t.isf(0.025, 18) / math.sqrt(20))  # that has grown with its share


def test_equivalence_asks_for_the_first_evidence_too_when_looked_at_any_time():
    low, high = anytime_interval(0.0, 1.0 / math.sqrt(20), 18, 20.0, 60.0 / 2.0)
    far = {AB: made(spread(20, 50.0)), AC: made(spread(20, -50.0)), BC: made(centred())}
    for margin, decision in ((high * 1.001, "equivalent"), (high * 0.999, "open")):
        known = anytime(comparisons=(AB, AC, BC), anytime_after=19, margin=margin)
        look = follow(known, far, 20)[BC].looks[-1]
        assert (look.bound_e, look.equivalence_p) == (20.0, None)
        assert (look.equivalence_low, look.equivalence_high) == pytest.approx((low, high))
        assert follow(known, far, 20)[BC].decision == decision


@pytest.mark.parametrize(
    ("mean", "looks"), [(0.0, (15, 20)), (1e3, (6, 10))]  # as equal as can be, as different as can be
)
def test_lost_pairs_make_a_look_smaller_and_too_few_decide_nothing(mean, looks):
    """Six for a difference, fifteen for equivalence."""
    rule, d = design(looks=looks), spread(20, mean, 1e-3)
    whole = follow(rule, {AB: made(d)}, looks[1])[AB]
    assert whole.decided_at == looks[0]
    d[1] = None
    course = follow(rule, {AB: made(d)}, looks[1])[AB]
    assert [look.pairs for look in course.looks] == [looks[0] - 1, looks[1] - 1]
    assert course.looks[0].p is not None
    assert course.looks[0].low is not None
    assert course.looks[0].equivalence_low is not None
    assert (course.decided_at, course.decision) == (looks[1], whole.decision)


@pytest.mark.parametrize("test", ["t", "rank"])
def test_no_group_leaves_for_an_equivalence_of_less_than_fifteen_pairs(test):
    """Six runs of a group that collapses in 15 % of them show no collapse in 38 % of experiments."""
    data = {AB: made(spread(20, 0.0, 0.01))}
    nominal = (Boundary(open=1, alpha=0.05, nominal_p=(0.01, 0.01, 0.01, 0.04)),)
    course = follow(design(test=test, boundaries=nominal), data, 20)[AB]
    assert (course.decision, course.decided_at, len(course.looks)) == ("equivalent", 20, 4)
    assert all(-2.0 < look.equivalence_low < look.equivalence_high < 2.0 for look in course.looks[1:])


SAME = {
    "all zero": [0.0] * 20,
    "constant": [5.0] * 20,
    "jitter of a constant": [5.0 + 1e-9 * (7 * r % 5) for r in range(20)],
    "all but one zero": [0.0] * 5 + [1.3] + [0.0] * 14,
    "all but five zero": [0.0, 0.4, 0.0, -0.3, 0.0, 0.2, 0.0, 0.1, 0.0, 0.7] + [0.0] * 10,
    "beside the sides": [5.0 + (1.0 + 1e-9 * (r % 3)) * (-1) ** r for r in range(20)],
}


@pytest.mark.parametrize("kind", ["t", "rank", "anytime"])
@pytest.mark.parametrize("name", SAME)
def test_degenerate_differences_have_one_rule(name, kind):
    """No test, no e-value, no interval and no decision, by any test."""
    if name == "beside the sides" and kind == "rank":
        return  # ranks are not adjusted: these are two values
    rule = anytime(looks=()) if kind == "anytime" else design(test=kind, looks=(20,))
    course = follow(rule, {AB: made(SAME[name])}, 20)[AB]
    look = course.looks[-1]
    assert course.decision == "open"
    assert (look.p, look.e, look.low, look.equivalence_low) == (None,) * 4
    six_others = [0.0] * 14 + [1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    assert follow(rule, {AB: made(six_others)}, 20)[AB].looks[-1].low is not None


def test_by_ranks_no_claim_is_made_against_the_mean():
    """Fifteen small wins and one crash: the mean is what the plan estimates."""
    wins = [1.0, 1.2, 1.4, 0.9, 1.1, 1.3, 1.5, 0.8, 1.6, 1.02, 1.22, 1.42, 0.92, 1.12, 1.32]
    rule = design(test="rank", looks=(16,))
    assert follow(rule, {AB: made([*wins, 1.7])}, 16)[AB].decision == "crossed"
    (look,) = follow(rule, {AB: made([*wins, -45.0])}, 16)[AB].looks
    assert look.p < look.bound_p
    assert 0.0 < look.low < look.mean
    assert not look.crossed
    close = [0.1, -0.2, 0.3, -0.1, 0.21, -0.3, 0.4, -0.4, 0.15, -0.15, 0.25, -0.25, 0.35, -0.35, 0.05]
    assert follow(rule, {AB: made([*close, 0.2])}, 16)[AB].decision == "equivalent"
    (look,) = follow(rule, {AB: made([*close, -45.0])}, 16)[AB].looks
    assert -2.0 < look.equivalence_low < look.equivalence_high < 2.0
    assert not look.equivalent


def test_no_pairs_at_all():
    course = follow(design(), {}, 20)[AB]
    assert (course.decision, course.finished, len(course.looks)) == ("open", True, 4)
    assert course.looks[0].mean is None


def test_a_look_without_its_own_boundary_decides_nothing():
    small = design(looks=(3,), boundaries=(), adjusted=False)
    course = follow(small, {AB: made([9.0, 9.1, 9.2])}, 3)[AB]
    (look,) = course.looks
    assert p_of(look) == [None, pytest.approx(2 * stats.t.sf(9.1 / (0.1 / math.sqrt(3)), 2)), False, False]
    assert (look.low, course.decision, course.finished) == (None, "open", True)


def test_a_bound_of_zero_never_rejects():
    """It is that of a look which cannot tell groups from positions, though lost pairs may have changed that."""
    zero = design(looks=(38, 40), boundaries=(Boundary(open=1, alpha=0.05, nominal_p=(0.0, 0.05)),))
    course = follow(zero, {AB: made(spread(40, 1e6, 1e-6))}, 40)[AB]
    assert course.looks[0].p == 0.0
    assert (course.looks[0].low, course.decided_at) == (None, 40)


@pytest.mark.parametrize("test", ["t", "rank"])
def test_all_differences_zero_is_neither_crossed_nor_equivalent(test):
    course = follow(design(test=test), {AB: made([0.0] * 20)}, 20)[AB]
    assert (course.decision, len(course.looks)) == ("open", 4)
    assert {look.p for look in course.looks} == {None}


def test_aliased_sides_decide_nothing():
    pairs = [Pair(replicate=r, a=60.0 + r % 3, b=50.0, position_a=0, position_b=1) for r in range(20)]
    course = follow(design(), {AB: pairs}, 20)[AB]
    assert {(look.mean, look.p, look.low, look.crossed) for look in course.looks} == {(None, None, None, False)}
    assert follow(design(adjusted=False), {AB: pairs}, 20)[AB].decision == "crossed"


def test_rank_is_the_exact_signed_rank():
    d = [1.0, 2.5, 3.0, -0.5, 4.0, 2.0, 1.5, 90.0, 3.5, 0.7]
    course = follow(design(test="rank", looks=(10,)), {AB: made(d)}, 10)[AB]
    (look,) = course.looks
    assert look.p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-9)
    assert (course.decision, course.direction) == ("crossed", 1)
    assert look.low > 0.0
    assert look.mean < 5.0  # the outlier does not carry it


def anytime(**changes):
    return design(**{"looks": (), "boundaries": (), "anytime_after": 0, **changes})


def test_open_ended_looks_after_every_replicate():
    d = spread(30, 1.0)
    course = follow(anytime(early_stop=False), {AB: made(d)}, 30)[AB]
    assert [look.replicates for look in course.looks] == list(range(1, 31))
    assert {look.bound_p for look in course.looks} == {None} == {look.p for look in course.looks}
    look = course.looks[11]
    x = np.column_stack([np.ones(12), np.array([1.0, -1.0] * 6)])
    solution, residual, _, _ = np.linalg.lstsq(x, np.array(d[:12]), rcond=None)
    t = solution[0] / math.sqrt(float(residual[0]) / 10 / 12)
    assert look.e == pytest.approx(math.exp(log_evidence(t, 10, 12.0)), rel=1e-9)
    assert (look.bound_e, look.alpha) == (20.0, 0.05)
    first = next(look.replicates for look in course.looks if look.crossed or look.equivalent)
    assert course.decided_at == first >= 6
    assert all((look.low > 0.0) == (look.e >= 20.0) for look in course.looks[5:])
    assert not follow(anytime(), {AB: made(DULL[:20])}, 20)[AB].finished


def test_open_ended_shares_evidence_among_comparisons():
    data = {AB: made(spread(30, 30.0)), AC: made(DULL[:30])}
    courses = follow(anytime(comparisons=(AB, AC)), data, 30)
    assert courses[AB].looks[-1].bound_e == 40.0
    assert {look.bound_e for look in courses[AC].looks[5:]} == {20.0}
    assert courses[AC].looks[4].bound_e == 40.0


@pytest.mark.parametrize(
    ("mean", "decision", "least"), [(0.0, "equivalent", 15), (1.0, "crossed", 6), (1e3, "crossed", 6)]
)
def test_open_ended_needs_six_pairs_and_fifteen_for_equivalence(mean, decision, least):
    course = follow(anytime(), {AB: made(spread(40, mean, 1e-3))}, 40)[AB]
    assert (course.decided_at, course.decision) == (least, decision)
    d = spread(40, mean, 1e-3)
    d[2] = None
    assert follow(anytime(), {AB: made(d)}, 40)[AB].decided_at == least + 1


def test_open_ended_equivalence_is_the_interval_at_half_the_evidence():
    data, late = {AB: made(spread(20, 0.3, 1.3))}, extended(design(), 19)
    look = follow(msgspec.structs.replace(late, looks=(), boundaries=(), margin=1e-6), data, 20)[AB].looks[-1]
    d = np.array(spread(20, 0.3, 1.3))
    side = np.array([1.0, -1.0] * 10)
    residual = d - d.mean() - side * (d @ side) / 20
    se = math.sqrt(float(residual @ residual) / 18 / 20)
    assert (look.low, look.high) == pytest.approx(anytime_interval(d.mean(), se, 18, 20.0, 100.0), rel=1e-9)
    low, high = anytime_interval(d.mean(), se, 18, 20.0, 50.0)
    edge = max(-low, high)
    for margin, decision in ((edge * 1.0001, "equivalent"), (edge * 0.9999, "open")):
        known = msgspec.structs.replace(late, looks=(), boundaries=(), margin=margin)
        assert follow(known, data, 20)[AB].decision == decision


def test_an_enormous_e_value_is_a_float():
    n = 400
    d = (1e3 + 1e-6 * np.random.default_rng(1).standard_normal(n)).tolist()
    look = follow(anytime(anytime_after=n - 1), {AB: made(d)}, n)[AB].looks[-1]
    assert look.e == math.exp(700.0)


def test_an_extended_plan_asks_for_more():
    d = spread(40, 0.55)
    planned = follow(design(), {AB: made(d)}, 20)[AB]
    longer = extended(design(), 20)
    course = follow(longer, {AB: made(d)}, 40)[AB]
    assert course.looks[: len(planned.looks)] == planned.looks
    if planned.decision == "open":
        assert {look.bound_e for look in course.looks[4:]} == {100.0}
        assert course.looks[4].replicates == 21
    decided = follow(longer, {AB: made(spread(40, 9.0))}, 40)[AB]
    assert decided.decided_at == 6


values = st.floats(0.0, 100.0).map(lambda x: round(x, 2))


@st.composite
def situations(draw):
    """A design and pairs, some lost, some groups far apart."""
    comparisons = draw(st.sampled_from([(AB,), (AB, AC), (AB, AC, BC)]))
    test, kind = draw(st.sampled_from(["t", "rank"])), draw(st.sampled_from(["looks", "open-ended", "extended"]))
    known = design(comparisons, test=test, early_stop=draw(st.booleans()), adjusted=draw(st.booleans()))
    if kind == "open-ended":
        known = msgspec.structs.replace(known, looks=(), boundaries=(), anytime_after=0)
    if kind == "extended":
        known = extended(known, 20)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    means, sd = draw(st.lists(st.sampled_from([50.0, 50.5, 52.0, 58.0]), min_size=3, max_size=3)), draw(
        st.sampled_from([0.2, 1.0, 4.0])
    )
    ends = {name: mean + sd * rng.standard_normal(26) for name, mean in zip("abc", means, strict=True)}
    lost = draw(st.sets(st.integers(0, 25), max_size=6))
    pairs = {}
    for contrast in comparisons:
        pairs[contrast] = [
            Pair(
                replicate=r, a=float(ends[contrast.a][r]), b=float(ends[contrast.b][r]),
                position_a=r % 2, position_b=1 - r % 2,
            )
            for r in range(26)
            if r not in lost
        ]  # fmt: skip
    return known, pairs, draw(st.integers(0, 26))


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
    there, back = follow(known, pairs, complete), follow(turned, other, complete)
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
    assert follow(known, pairs, complete) == follow(known, shuffled, complete) == follow(known, pairs, complete)


@given(situations(), st.integers(0, 26))
@settings(max_examples=60)
def test_more_replicates_never_take_back_a_look(situation, later):
    known, pairs, complete = situation
    if known.anytime_after != 0:
        later = max(later, complete)
    before, after = follow(known, pairs, min(complete, later)), follow(known, pairs, max(complete, later))
    for contrast, course in before.items():
        assert after[contrast].looks[: len(course.looks)] == course.looks
        if course.decision != "open":
            assert (after[contrast].decision, after[contrast].decided_at) == (course.decision, course.decided_at)
            assert after[contrast].finished


@given(situations())
@settings(max_examples=60)
def test_what_is_not_yet_complete_is_not_looked_at(situation):
    known, pairs, complete = situation
    cut = {contrast: [pair for pair in rows if pair.replicate < complete] for contrast, rows in pairs.items()}
    assert follow(known, pairs, complete) == follow(known, cut, complete)


@given(situations())
@settings(max_examples=60)
def test_a_crossed_look_excludes_zero_from_its_interval(situation):
    known, pairs, complete = situation
    for course in follow(known, pairs, complete).values():
        for look in course.looks:
            if look.crossed:
                assert look.low > 0.0 or look.high < 0.0
                assert look.pairs >= 6
            assert not (look.crossed and look.equivalent)
