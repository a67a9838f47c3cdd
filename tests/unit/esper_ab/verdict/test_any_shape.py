"""Claims that must hold for any shape: the intervals of a look, and each verdict that they allow or forbid."""

import msgspec
import numpy as np
import pytest
from support.outcomes import look_designs
from support.outcomes.compared_designs import compared, design, open_ended, pairs_of

from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Boundary, Contrast
from esper_ab.readers.scales import scales_of, with_best
from esper_ab.stats.bounded_mean import interval
from esper_ab.stats.pair import NO_PAIRS, Samples
from esper_ab.verdict.analysis_plan import Rule, make_plan
from esper_ab.verdict.any_shape import hull, shape_intervals
from esper_ab.verdict.requirement import Requirement, holds, require
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.undecided_reason import Undecided, why_undecided
from esper_ab.verdict.verdict import Verdict

WAVE = np.linspace(-0.5, 0.5, 20)
HALF_EQUAL = np.array([1.999, 1.998, 1.997, 1.996, 1.999, 1.998, 0.001, 0.002, 0.003, 0.004])
SAME = design(20, worst=10.0)
ANY = design(20, worst=10.0, shape="any")
NOT_WORSE = Requirement(left="shaped", relation="not-worse-than", right="simplified")


def compare(d, rule):
    return compared(rule, pairs_of(50.0 + d, np.full(len(d), 50.0)))


def test_the_intervals_are_those_of_the_evidence_at_each_share_of_alpha():
    boundaries = tuple(Boundary(open=n, alpha=0.05 / n, nominal_p=(0.05 / n,)) for n in (3, 2, 1))
    three = design(20, comparisons=3, boundaries=boundaries, worst=10.0, shape="any")
    pairs = pairs_of(60.0 + WAVE, np.full(20, 50.0))
    intervals = shape_intervals(three, pairs, 2)
    assert intervals.repeated == interval(pairs.differences, 90.0, 80.0)
    assert intervals.simultaneous == interval(pairs.differences, 90.0, 120.0)
    assert intervals.equivalence == interval(pairs.differences, 90.0, 60.0)


def test_an_outcome_beyond_the_declared_range_widens_the_intervals():
    pairs = pairs_of(60.0 + WAVE, np.full(20, 4.0))
    assert shape_intervals(ANY, pairs, 1).repeated == interval(pairs.differences, 96.0, 40.0)


def test_runs_without_pairs_have_no_such_intervals():
    assert shape_intervals(ANY, NO_PAIRS, 1) is None
    assert shape_intervals(ANY, Samples(a=np.ones(8), b=np.ones(8)), 1) is None


def test_the_hull_contains_both_intervals():
    assert hull((1.0, 3.0), (0.5, 2.0)) == (0.5, 3.0)
    assert hull(None, (0.5, 2.0)) is None


def test_a_small_clear_difference_is_claimed_only_if_shapes_are_the_same():
    assert compare(WAVE + 3.0, SAME).verdict is Verdict.BETTER
    comparison = compare(WAVE + 3.0, ANY)
    assert (comparison.verdict, why_undecided(comparison)) == (Verdict.INCONCLUSIVE, Undecided.SHAPE)
    assert comparison.low < 0.0 < comparison.high


@pytest.mark.parametrize(("side", "verdict"), [(1.0, Verdict.BETTER), (-1.0, Verdict.WORSE)])
def test_a_difference_that_unseen_failures_cannot_undo_is_claimed(side, verdict):
    comparison = compare(side * (WAVE + 30.0), ANY)
    assert comparison.verdict is verdict
    assert min(abs(comparison.low), abs(comparison.high)) < min(map(abs, compare(WAVE + 30.0, SAME).at_look[:2]))


def test_differences_that_vary_much_need_the_t_test_too():
    early = look_designs.design(looks=(10, 14, 20), adjusted=False, worst=98.0, shape="any")
    comparison = compared(early, pairs_of(98.0 + HALF_EQUAL, np.full(10, 98.0)))
    assert comparison.last_look.any_shape[0] > 0.0 > comparison.low
    assert comparison.verdict is Verdict.INCONCLUSIVE


def test_equivalence_needs_that_unseen_failures_cannot_reach_the_margin():
    assert compare(WAVE, SAME).verdict is Verdict.EQUIVALENT
    assert compare(WAVE, ANY).verdict is Verdict.INCONCLUSIVE
    shallow = design(20, worst=95.0, shape="any")
    comparison = compared(shallow, pairs_of(97.0 + 0.1 * WAVE, np.full(20, 97.0)))
    assert comparison.verdict is Verdict.EQUIVALENT
    assert comparison.headline.endswith("and a difference of 2 points or more is ruled out.")


def test_the_gate_of_not_worse_needs_it_too_and_then_leaves_nothing_open():
    assert holds(NOT_WORSE, compare(WAVE + 0.9, SAME))
    assert not holds(NOT_WORSE, compare(WAVE + 0.9, ANY))
    shallow = design(20, worst=95.0, shape="any")
    assert require([NOT_WORSE], [compared(shallow, pairs_of(97.0 + 0.1 * WAVE, np.full(20, 97.0)))]) == []


def test_outcomes_of_0_or_1_keep_their_exact_test():
    counts = (2, 12, 1, 5)
    a, b = (np.repeat(ends, counts) for ends in ((100.0, 100.0, 0.0, 0.0), (100.0, 0.0, 100.0, 0.0)))
    same = compared(design(20, worst=0.0), pairs_of(a, b))
    assert same.verdict is Verdict.BETTER
    comparison = compared(design(20, worst=0.0, shape="any"), pairs_of(a, b))
    assert (comparison.verdict, comparison.low) == (Verdict.BETTER, same.low)
    assert comparison.last_look.any_shape is None


def test_a_plan_without_a_maximum_needs_both_kinds_of_evidence_after_every_pair():
    rule = open_ended(worst=10.0)
    any_rule = msgspec.structs.replace(rule, shape="any")
    assert compare(WAVE + 3.0, rule).verdict is Verdict.BETTER
    assert compare(WAVE + 3.0, any_rule).verdict is Verdict.INCONCLUSIVE
    assert compare(WAVE + 40.0, any_rule).verdict is Verdict.BETTER


def test_the_mean_over_tasks_has_the_range_of_the_means():
    scales = scales_of(
        ("one", "two"),
        {"one": "1", "two": "10"},
        better={"one": "higher", "two": "lower"},
        worst={"one": "0", "two": "900"},
    )
    scales = with_best(scales, {"one": "8", "two": "0"})
    plan = make_plan(("a", "b"), tuple(map(str, range(20))), scales, Rule(shape="any"))
    of_mean = plan.design_of(Contrast(a="a", b="b", task=MEAN))
    assert (of_mean.worst, of_mean.outcome.best_possible) == ((0.0 - 90.0) / 2, (8.0 - 0.0) / 2)
    assert of_mean.largest_difference() == (8.0 + 90.0) / 2
    assert plan.design_of(Contrast(a="a", b="b", task="two")).largest_difference() == 900.0


def test_a_plan_with_an_open_range_is_refused():
    scales = scales_of(("one",), "1", worst="0")
    with pytest.raises(UsageError, match="--shape any needs the best possible outcome of one"):
        make_plan(("a", "b"), tuple(map(str, range(20))), scales, Rule(shape="any"))
