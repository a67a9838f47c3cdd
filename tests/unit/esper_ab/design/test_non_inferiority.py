"""The claim that a group is not worse: its looks, its bounds, and the plans that cannot show it."""

import re

import numpy as np
import pytest
from scipy import stats

from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import default_looks
from esper_ab.design.non_inferiority import check_claim, non_inferiority_of

POSSIBLE = {
    "groups": ("new", "old"),
    "control": "",
    "seeds": 20,
    "looks": (),
    "futility": 0.0,
}


@pytest.mark.parametrize(
    ("seeds", "looks"),
    [(15, (15,)), (23, (23,)), (24, (20, 24)), (30, (20, 30)), (40, (20, 28, 40)), (60, (30, 42, 60))],
)
def test_no_default_look_of_the_claim_comes_before_twenty_seeds(seeds, looks):
    assert default_looks(seeds, "not-worse") == looks


def test_one_look_has_alpha_itself_divided_among_the_comparisons():
    sides = ((0, 1),) * 15
    assert non_inferiority_of(0.05, 1, sides, 1, (15,)).nominal_p == (0.05,)
    assert non_inferiority_of(0.05, 4, sides, 1, (15,)).nominal_p == pytest.approx((0.0125,))


def test_all_looks_together_call_a_group_at_the_margin_not_worse_with_probability_alpha():
    """The t of each look is computed here from 200,000 experiments of normal differences."""
    looks = (16, 20, 30)
    bounds = non_inferiority_of(0.05, 1, ((0, 1),) * 30, 1, looks).nominal_p
    differences = np.random.default_rng(5).standard_normal((200_000, 30))
    shown = np.zeros(200_000, dtype=bool)
    for look, bound in zip(looks, bounds, strict=True):
        part = differences[:, :look]
        t = part.mean(axis=1) / part.std(axis=1, ddof=1) * np.sqrt(look)
        shown |= t >= stats.t.isf(bound, look - 1)
    standard_error = np.sqrt(0.05 * 0.95 / 200_000)
    assert abs(shown.mean() - 0.05) < 4.0 * standard_error
    assert bounds[0] == pytest.approx(2.0 * stats.norm.sf(stats.norm.isf(0.025) / np.sqrt(16 / 30)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": ("a", "b", "c")}, "whether each group is not worse than one other"),
        ({"futility": 0.8}, "stops for futility have no use"),
        ({"seeds": 14}, "needs at least 15 seeds"),
        ({"looks": (14, 20)}, "the first look needs at least 15 seeds"),
    ],
)
def test_a_plan_that_cannot_show_the_claim_is_refused(changes, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        check_claim("not-worse", **POSSIBLE | changes)
    assert check_claim("difference", **POSSIBLE | changes) is None


@pytest.mark.parametrize(
    "changes",
    [{}, {"groups": ("a", "b", "c"), "control": "c"}, {"seeds": 15}, {"looks": (15, 20)}, {"seeds": None}],
)
def test_a_plan_that_can_show_the_claim_is_accepted(changes):
    assert check_claim("not-worse", **POSSIBLE | changes) is None
