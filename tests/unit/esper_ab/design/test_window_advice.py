"""When the last third of training is recommended as outcome: flat curves in all groups, and fewer seeds."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.plans import fake_plans

from esper_ab.design.pairs_needed import fewest_pairs
from esper_ab.design.power import sd_of_differences
from esper_ab.design.window_advice import (
    GroupChange,
    advice_of_plan,
    advice_sentence,
    changes,
    is_flat,
    window_advice,
)
from esper_ab.stats.curve_change import CurveChange

MARGIN = 2.0
NUMBERS = st.floats(-50.0, 50.0)
MARGINS = st.floats(0.01, 100.0)
INTERVALS = st.tuples(NUMBERS, NUMBERS).map(sorted)


def change_of(interval):
    low, high = interval
    return CurveChange(runs=20, mean=(low + high) / 2.0, low=low, high=high)


def group_of(name, low, high):
    return GroupChange(group=name, change=change_of((low, high)))


FLAT_GROUP = group_of("a", -0.4, 0.6)
RISING = group_of("b", 2.2, 4.0)
WIDE = group_of("c", -0.5, 2.5)


@pytest.mark.parametrize(
    ("groups", "seeds", "seeds_evaluation", "finding"),
    [
        ([FLAT_GROUP], 34, 65, "recommended"),
        ([FLAT_GROUP], 34, None, "recommended"),
        ([FLAT_GROUP], 60, 65, "costly"),
        ([FLAT_GROUP], None, 65, "costly"),
        ([FLAT_GROUP], None, None, "costly"),
        ([FLAT_GROUP, RISING], 34, 65, "changing"),
        ([FLAT_GROUP, WIDE], 34, 65, "unknown"),
        ([WIDE, RISING], 34, 65, "changing"),
    ],
)
def test_the_last_third_is_recommended_only_if_all_curves_are_flat_and_it_saves_seeds(
    groups, seeds, seeds_evaluation, finding
):
    advice = window_advice(groups, MARGIN, seeds, seeds_evaluation)
    assert advice.finding == finding


def test_the_steepest_of_the_changing_groups_is_named():
    uncertain = group_of("d", -9.0, 9.0)
    assert window_advice([FLAT_GROUP, RISING, uncertain], MARGIN, 34, 65).steepest is RISING
    assert window_advice([FLAT_GROUP, uncertain], MARGIN, 34, 65).steepest is uncertain


def test_without_curves_there_is_no_advice():
    assert window_advice([], MARGIN, 34, 65) is None


@given(interval=INTERVALS, margin=MARGINS)
def test_curves_are_never_both_flat_and_changing(interval, margin):
    change = change_of(interval)
    assert not (is_flat(change, margin) and changes(change, margin))


@given(interval=INTERVALS, margin=MARGINS, factor=st.floats(1.0, 10.0))
def test_flat_curves_stay_flat_for_a_larger_margin(interval, margin, factor):
    change = change_of(interval)
    assert is_flat(change, margin * factor) or not is_flat(change, margin)


@given(interval=INTERVALS, margin=MARGINS)
def test_the_direction_of_a_change_does_not_count(interval, margin):
    low, high = interval
    mirrored = change_of((-high, -low))
    assert is_flat(mirrored, margin) == is_flat(change_of(interval), margin)
    assert changes(mirrored, margin) == changes(change_of(interval), margin)


@given(interval=INTERVALS, margin=MARGINS, factor=st.sampled_from([0.25, 0.5, 2.0, 4.0]))
def test_the_unit_of_the_outcome_does_not_count(interval, margin, factor):
    change = change_of(interval)
    scaled = change_of([factor * end for end in interval])
    assume(all(end == 0.0 or abs(end) > 1e-300 for end in interval))
    assert is_flat(scaled, factor * margin) == is_flat(change, margin)


def sentence_of(groups, seeds=34, seeds_evaluation=65, cost=None):
    return advice_sentence(window_advice(groups, MARGIN, seeds, seeds_evaluation), MARGIN, "points", cost)


def test_a_recommendation_says_what_it_saves_and_what_it_estimates():
    assert sentence_of([FLAT_GROUP], cost=lambda seeds: f"{seeds} h") == (
        "Recommended: --outcome-over last-third, which needs 34 seeds (34 h) for the margin instead of "
        "65 seeds (65 h). Curves are flat there (a: +0.1, 90 % interval -0.4 to +0.6); it estimates the last third "
        "of training."
    )


def test_changing_curves_are_named_with_their_change():
    assert sentence_of([FLAT_GROUP, RISING]) == (
        "Not recommended: --outcome-over last-third, because the curves of b still change (+3.1, 90 % interval +2.2 "
        "to +4): a mean over the last third of training estimates another difference."
    )


def test_curves_whose_change_is_not_known_well_enough_say_how_far_it_may_go():
    assert sentence_of([WIDE]) == (
        "Not recommended: --outcome-over last-third, because the curves of c may still change by 1 points or more, "
        "which is half the margin (+1, 90 % interval -0.5 to +2.5)."
    )


def test_a_window_that_saves_too_few_seeds_says_both_numbers():
    assert sentence_of([FLAT_GROUP], seeds=None, seeds_evaluation=9000) == (
        "Not recommended: --outcome-over last-third. Curves are flat over the last third of training, but it needs "
        "more than 10,000 seeds, and the evaluation 9000 seeds."
    )


def test_a_plan_with_a_calibration_needs_the_seeds_of_both_standard_deviations():
    design = fake_plans.plan(seeds=6).design
    advice = advice_of_plan(design, [FLAT_GROUP], 1.0, 2.0)
    spreads = [sd_of_differences(sd, 0.0) for sd in (1.0, 2.0)]
    assert [advice.seeds, advice.seeds_evaluation] == [fewest_pairs(sd, design.margin, 0.05) for sd in spreads]
    assert advice_of_plan(design, [FLAT_GROUP], 1.0, 900.0).seeds_evaluation is None


@pytest.mark.parametrize("sds", [(0.0, 1.0), (1.0, 0.0)])
def test_a_plan_whose_runs_did_not_differ_gets_no_advice(sds):
    assert advice_of_plan(fake_plans.plan(seeds=6).design, [FLAT_GROUP], *sds) is None
