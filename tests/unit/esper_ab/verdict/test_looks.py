"""The progress of comparisons over the looks: decisions, alpha passed on, and rules that always hold."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.outcomes.csv_outcomes import outcomes, rows, scales
from support.outcomes.look_designs import AB, AC, BC, DULL, NOMINAL, anytime, design, pairs_from, situations, spread

from esper_ab.design.design import Boundary, Futility, extended
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.pair import Pairs
from esper_ab.stats.pair import before as before_replicate
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.looks import progress_after, take_looks

LAST = {"looks": (20,)}
STOPS = Futility(power=0.8, nominal_p=(0.02, 0.07, 0.14, 0.0))
NEAR = [0.3, -0.3, 0.5, -0.5, 0.1, -0.1, 0.4, -0.4, 0.2, -0.2] * 2  # of 6 pairs the 96 % interval lies within 2 points
LENIENT = (Boundary(open=1, alpha=0.05, nominal_p=(0.01, 0.01, 0.01, 0.04)),)
EARLY = [3.0, 3.2, 2.9, 3.1, 3.05, 2.95, -6.0, -4.0, -7.0, -2.0]


PLANNED = make_external_plan(("new", "old"), [str(seed) for seed in range(20)], scales(), Rule(looks=(10, 20)))
AFTER_EVERY_PAIR = msgspec.structs.replace(
    PLANNED, design=msgspec.structs.replace(PLANNED.design, looks=(), boundaries=(), anytime_after=0)
)


def drop_replicate(d, replicate):
    """Return the differences with one replicate lost."""
    return [None if r == replicate else x for r, x in enumerate(d)]


@pytest.mark.parametrize(
    ("rule", "d", "complete_replicates", "decision", "deciding_replicates", "look_count"),
    [
        (design(), spread(20, 9.0), 5, "open", None, 0),
        (design(), spread(20, 9.0), 20, "crossed", 6, 1),
        (design(), spread(20, 1.0, 0.1), 20, "crossed", 6, 1),  # also if it is smaller than the margin
        (design(early_stop=False), [*spread(6, 9.0), *[-40.0, 30.0] * 7], 20, "crossed", 6, 4),
        (design(), DULL[:20], 20, "open", None, 4),
        (design(), DULL[:14], 14, "open", None, 3),
        (design(), [None] * 20, 20, "open", None, 4),
        (extended(design(), 20), spread(40, 9.0), 40, "crossed", 6, 1),
        # No difference is called small by an interim look: a group that collapses rarely looks small for a while.
        (design(looks=(16, 20)), spread(20, 0.0, 0.1), 20, "equivalent", 20, 2),
        # Six runs of a group that collapses in 15 % of them show no collapse in 38 % of experiments.
        (design(boundaries=LENIENT), spread(20, 0.0, 0.01), 20, "equivalent", 20, 4),
        # Six pairs for a difference, fifteen for equivalence, whatever was lost.
        (design(looks=(15,)), spread(20, 0.0, 1e-3), 15, "equivalent", 15, 1),
        (design(looks=(15,)), drop_replicate(spread(20, 0.0, 1e-3), 1), 15, "open", None, 1),
        (design(looks=(6,)), spread(20, 1e3, 1e-3), 6, "crossed", 6, 1),
        (design(looks=(6,)), drop_replicate(spread(20, 1e3, 1e-3), 1), 6, "open", None, 1),
        (anytime(), spread(40, 0.0, 1e-3), 40, "equivalent", 25, 25),
        (anytime(), drop_replicate(spread(40, 0.0, 1e-3), 2), 40, "equivalent", 26, 26),
        (anytime(), spread(40, 1.0, 1e-3), 40, "crossed", 6, 6),
        (anytime(), drop_replicate(spread(40, 1.0, 1e-3), 2), 40, "crossed", 7, 7),
        # Stops for futility, which claim nothing; without them the same pairs end equivalent.
        (design(futility=STOPS), NEAR, 20, "futile", 6, 1),
        (design(), NEAR, 20, "equivalent", 20, 4),
        (design(futility=STOPS), drop_replicate(NEAR, 0), 10, "futile", 10, 2),
        # Without early stop pairs to come may take a decision out of the last look, or bring it back.
        (design(early_stop=False, adjusted=False), EARLY, 10, "crossed", 6, 2),
        (design(early_stop=False, adjusted=False), EARLY * 2, 20, "crossed", 6, 4),
    ],
)
def test_each_look_rule_reaches_the_expected_decision(
    rule, d, complete_replicates, decision, deciding_replicates, look_count
):
    progress = progress_after(rule, {AB: pairs_from(d)}, complete_replicates)[AB]
    assert (progress.decision, progress.decided_at, len(progress.looks)) == (decision, deciding_replicates, look_count)
    assert progress.direction == (1 if decision == "crossed" else 0)
    at_last_look = complete_replicates == (rule.looks[-1] if rule.looks else None)
    assert progress.finished == (at_last_look or (decision != "open" and rule.early_stop))
    assert progress.standing == ("open" if d[:6] == EARLY[:6] or -40.0 in d else decision)


def test_every_look_has_its_bounds_and_limits():
    (look,) = progress_after(design(), {AB: pairs_from(spread(20, 9.0))}, 20)[AB].looks
    assert (look.replicates, look.pairs, look.bound_p, look.alpha) == (6, 6, NOMINAL[1][0], 0.05)
    assert look.p <= look.bound_p
    assert 0.0 < look.low < look.mean < look.high
    progress = progress_after(design(futility=STOPS), {AB: pairs_from(NEAR)}, 20)[AB]
    (look,) = progress.looks
    assert (progress.claimed, look.crossed, look.equivalent, look.futility_p) == (False, False, False, 0.02)
    assert max(-2.0, look.low) < look.futility_low < look.futility_high < min(2.0, look.high)
    progress_above = progress_after(
        design(looks=(16, 20), early_stop=False), {AB: pairs_from(spread(20, 1.0, 0.1))}, 20
    )[AB]
    assert [(look.crossed, look.small) for look in progress_above.looks] == [(True, False), (True, True)]


def make_differences(mean, n=20):
    """Return n differences with this mean and a residual SD of 1, so that their intervals are known."""
    d = np.array(spread(n, 0.0))
    side = np.array([1.0, -1.0] * (n // 2))
    d = d - d.mean() - side * (d @ side) / n
    return (mean + d / math.sqrt(float(d @ d) / (n - 2))).tolist()


def make_differences_with_p(p, sign=1.0):
    """Return twenty differences whose adjusted t has exactly this p."""
    return make_differences(sign * stats.t.isf(p / 2, 18) / math.sqrt(20))


@given(st.lists(st.floats(1e-9, 0.2), min_size=3, max_size=3), st.sampled_from([0.001, 0.3, 1.0]))
@settings(max_examples=50)
def test_at_a_single_look_only_differences_beyond_the_margin_pass_on_alpha(ps, margin):
    """A smaller difference may still be called smaller than the margin, so its share is not free."""
    data = {contrast: pairs_from(make_differences_with_p(p)) for contrast, p in zip((AB, AC, BC), ps, strict=True)}
    progress = progress_after(design((AB, AC, BC), **LAST, margin=margin), data, 20)
    shares = 3
    for p, contrast in sorted(zip(ps, (AB, AC, BC), strict=True), key=lambda item: item[0]):
        look = progress[contrast].looks[0]
        share = round(0.05 / look.alpha)
        assert look.bound_p == 0.05 / share
        if progress[contrast].decision == "crossed":
            assert share >= shares
            shares -= look.low >= margin
        else:
            assert share == shares
            assert p > 0.99999 * 0.05 / shares


def test_simultaneous_intervals_use_the_first_share_of_alpha():
    data = {AB: pairs_from(spread(20, 30.0)), AC: pairs_from(make_differences_with_p(0.03))}
    look = progress_after(design((AB, AC), **LAST), data, 20)[AC].looks[0]
    assert (look.alpha, look.bound_p) == (0.05, 0.05)
    half_width = stats.t.isf(0.025 / 2, 18) / math.sqrt(20)
    assert (look.simultaneous_low, look.simultaneous_high) == pytest.approx(
        (look.mean - half_width, look.mean + half_width)
    )
    edge = look.simultaneous_high
    for margin, is_small in ((edge * 1.0001, True), (edge * 0.9999, False)):
        progress = progress_after(design((AB, AC), **LAST, margin=margin), data, 20)[AC]
        assert (progress.decision, progress.looks[0].small) == ("crossed", is_small)


def test_a_decided_comparison_passes_its_alpha_to_later_looks():
    data = {AB: pairs_from(spread(20, 30.0)), AC: pairs_from(DULL[:20])}
    progress = progress_after(design((AB, AC)), data, 20)
    assert (progress[AB].decided_at, progress[AB].looks[0].bound_p) == (6, NOMINAL[2][0])
    assert [look.bound_p for look in progress[AC].looks] == list(NOMINAL[1])  # the first one was tested again
    progress_without_stop = progress_after(design((AB, AC), early_stop=False), data, 20)[AB]
    assert [look.bound_p for look in progress_without_stop.looks] == list(NOMINAL[2])  # its own share stays what it was
    evidence = progress_after(
        anytime(comparisons=(AB, AC)), {AB: pairs_from(spread(30, 30.0)), AC: pairs_from(DULL[:30])}, 30
    )
    assert evidence[AB].looks[-1].bound_e == 40.0
    assert [look.bound_e for look in evidence[AC].looks] == [40.0] * 5 + [20.0] * 25


@pytest.mark.parametrize(
    ("rule", "first_differences", "decision"),
    [
        (anytime(comparisons=(AB, AC)), spread(30, 0.0, 0.1), "equivalent"),
        (design((AB, AC), **LAST), spread(20, 1.5, 0.5), "crossed"),  # may still be called small
        (design((AB, AC), futility=STOPS), NEAR, "futile"),
    ],
)
def test_comparisons_decided_as_small_or_futile_do_not_pass_on_alpha(rule, first_differences, decision):
    progress = progress_after(
        rule,
        {AB: pairs_from(first_differences), AC: pairs_from(DULL[: len(first_differences)])},
        len(first_differences),
    )
    assert (progress[AB].decision, progress[AC].decision) == (decision, "open")
    assert {look.alpha for look in progress[AC].looks} == {0.025}


def test_equivalence_is_tested_at_the_first_share_of_alpha():
    """Alpha freed by true differences is no license for equivalence: those hypotheses are another family."""
    half_width = stats.t.isf(0.05 / 3, 18) / math.sqrt(20)  # at alpha / 3, with an SD of 1
    assert half_width > 1.1 * stats.t.isf(0.05, 18) / math.sqrt(20)
    far_data = {
        AB: pairs_from(spread(20, 50.0)),
        AC: pairs_from(spread(20, -50.0)),
        BC: pairs_from(make_differences(0.0)),
    }
    for margin, decision in ((half_width * 1.001, "equivalent"), (half_width * 0.999, "open")):
        progress = progress_after(design((AB, AC, BC), **LAST, margin=margin), far_data, 20)
        assert [progress[c].decision for c in (AB, AC, BC)] == ["crossed", "crossed", decision]
        (look,) = progress[BC].looks
        assert (look.bound_p, look.equivalence_p) == (0.05, 0.05 / 3)
        assert (look.equivalence_low, look.equivalence_high) == pytest.approx((-half_width, half_width))
        # The plain interval uses the larger share.
        assert look.high == pytest.approx(stats.t.isf(0.025, 18) / math.sqrt(20))


def test_equivalence_under_the_anytime_rule_uses_the_first_evidence_bound():
    low, high = anytime_interval(0.0, 1.0 / math.sqrt(26), 24, 26.0, 60.0 / 2.0)
    far_data = {
        AB: pairs_from(spread(26, 50.0)),
        AC: pairs_from(spread(26, -50.0)),
        BC: pairs_from(make_differences(0.0, 26)),
    }
    for margin, decision in ((high * 1.001, "equivalent"), (high * 0.999, "open")):
        progress = progress_after(anytime(comparisons=(AB, AC, BC), anytime_after=25, margin=margin), far_data, 26)[BC]
        look = progress.looks[-1]
        assert (progress.decision, look.bound_e, look.equivalence_p) == (decision, 20.0, None)
        assert (look.equivalence_low, look.equivalence_high) == pytest.approx((low, high))


def test_an_extended_plan_requires_stronger_evidence():
    planned_progress, longer_progress = (
        progress_after(rule, {AB: pairs_from(DULL)}, 40)[AB] for rule in (design(), extended(design(), 20))
    )
    assert longer_progress.looks[:4] == planned_progress.looks
    assert [(look.replicates, look.bound_e) for look in longer_progress.looks[4:]] == [
        (r, 100.0) for r in range(21, 41)
    ]


def test_a_comparison_stopped_for_futility_is_not_resumed():
    """Pairs that exist because other groups go on, and an extension, change nothing."""
    later_differences = [*NEAR[:6], *spread(34, 30.0)]
    for rule in (design((AB, AC), futility=STOPS), extended(design((AB, AC), futility=STOPS), 20)):
        progress = progress_after(rule, {AB: pairs_from(later_differences), AC: pairs_from(DULL)}, 40)
        assert (progress[AB].decision, progress[AB].decided_at, len(progress[AB].looks)) == ("futile", 6, 1)


def test_a_look_with_all_pairs_on_one_side_does_not_decide():
    """All replicates of the other side were lost, so the lanes could explain the whole difference."""
    planned = pairs_from(spread(20, 9.0))
    pairs = planned.taken((planned.replicate % 2 == 0) | (planned.replicate > 13))
    for is_adjusted in (True, False):
        rule = design(adjusted=is_adjusted)
        progress = progress_after(rule, {AB: pairs}, 14)[AB]
        assert [(look.pairs, look.crossed) for look in progress.looks] == [(3, False), (5, False), (7, False)]
        assert (progress.looks[-1].mean, progress.looks[-1].low, progress.decision) == (None, None, "open")
        progress = progress_after(rule, {AB: pairs}, 20)[AB]
        assert (progress.decision, progress.decided_at) == ("crossed", 20)
    for noise in ({"positions_matter": False}, {"positions_drawn": True}):
        last_look = progress_after(design(adjusted=False, **noise), {AB: pairs}, 14)[AB].looks[-1]
        assert (last_look.mean > 8.0, last_look.crossed) == (True, True)


@given(situations(), st.integers(0, 26), st.randoms(use_true_random=False))
@settings(max_examples=80)
def test_neither_later_pairs_nor_their_order_change_a_look(situation, later_replicates, random):
    rule, pairs, complete_replicates = situation
    if rule.anytime_after != 0:
        later_replicates = max(later_replicates, complete_replicates)
    first_replicates, last_replicates = sorted((complete_replicates, later_replicates))
    progress_before = progress_after(rule, pairs, first_replicates)
    progress_after_all = progress_after(rule, pairs, last_replicates)
    pairs_before = {contrast: before_replicate(rows, first_replicates) for contrast, rows in pairs.items()}
    shuffled_pairs = {contrast: Pairs.of(random.sample(rows, len(rows))) for contrast, rows in pairs_before.items()}
    assert progress_after(rule, shuffled_pairs, first_replicates) == progress_before
    for contrast, progress in progress_before.items():
        assert progress_after_all[contrast].looks[: len(progress.looks)] == progress.looks
        if progress.decision != "open":
            assert (progress_after_all[contrast].decision, progress_after_all[contrast].decided_at) == (
                progress.decision,
                progress.decided_at,
            )
            assert progress_after_all[contrast].finished or not rule.early_stop


@settings(max_examples=80, deadline=None)
@given(situations())
def test_futility_stops_never_create_additional_claims(situation):
    """Stops do not bind: each claim is also one of the rule without stops, at the same look and bound."""
    rule, pairs, complete_replicates = situation
    if len(rule.looks) < 2 or not rule.early_stop:
        return
    stopping_rule = msgspec.structs.replace(rule, futility=STOPS)
    plain_progress = progress_after(rule, pairs, complete_replicates)
    stopped = progress_after(stopping_rule, pairs, complete_replicates)
    for contrast, progress in stopped.items():
        for look, plain_look in zip(progress.looks, plain_progress[contrast].looks, strict=False):
            assert look.alpha <= plain_look.alpha  # a stopped comparison passes no share on
            if look.alpha == plain_look.alpha:
                assert (look.crossed, look.equivalent, look.low) == (
                    plain_look.crossed,
                    plain_look.equivalent,
                    plain_look.low,
                )
        if progress.decision == "futile":
            last_look = progress.looks[-1]
            assert last_look.replicates < rule.looks[-1]
            assert -rule.margin < last_look.futility_low <= last_look.futility_high < rule.margin


@pytest.mark.parametrize(
    ("new_seeds", "old_seeds", "complete_if_planned", "complete_after_pairs"),
    [
        (0, 1, 0, 0),
        (1, 1, 0, 1),
        (9, 9, 0, 9),
        (9, 10, 0, 9),
        (10, 9, 0, 9),
        (20, 9, 0, 9),
        (10, 10, 10, 10),
        (19, 20, 10, 19),
        (20, 20, 20, 20),
    ],
)
def test_a_look_waits_until_both_groups_have_all_its_seeds(
    new_seeds, old_seeds, complete_if_planned, complete_after_pairs
):
    present_seeds = {"new": new_seeds, "old": old_seeds}
    table = [row for row in rows(DULL[:20], [0.0] * 20) if row["seed"] < present_seeds[row["group"]]]
    for plan, complete_replicates in ((PLANNED, complete_if_planned), (AFTER_EVERY_PAIR, complete_after_pairs)):
        progress = take_looks(plan, outcomes(table))
        (comparison,) = progress.comparisons.values()
        (pairing,) = progress.pairings.values()
        assert progress.complete == complete_replicates
        assert (comparison.last.replicates if comparison.last else 0) == complete_replicates
        assert len(pairing.pairs) == min(new_seeds, old_seeds)


@pytest.mark.parametrize(("outcome", "complete_replicates"), [(1.0, 10), ("", 10), (None, 0)])
def test_a_look_waits_for_a_missing_run_but_not_for_a_lost_run(outcome, complete_replicates):
    """An outcome of None stands for a missing row."""
    table = [row | {"outcome": outcome} if row["seed"] == 9 else row for row in rows(DULL[:12], [0.0] * 12)]
    progress = take_looks(PLANNED, outcomes([row for row in table if row["outcome"] is not None]))
    assert progress.complete == complete_replicates
