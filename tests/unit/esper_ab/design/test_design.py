"""Comparisons, looks and rules of designs; test_boundaries.py has the boundaries themselves."""

import msgspec
import pytest
from support.outcomes.compared_designs import design as designed
from support.outcomes.compared_designs import open_ended
from support.plans import fake_plans

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import Arithmetic
from esper_ab.design.design import Contrast, default_looks, extended, rule
from esper_ab.plan.blocks import extend

LOOSE = Arithmetic(deterministic=False)  # so that device and start order could matter on cores, too


@pytest.mark.parametrize(
    ("replicates", "looks"),
    [
        (1, (1,)),
        (6, (6,)),
        (15, (15,)),
        (16, (14, 16)),
        (20, (14, 20)),
        (26, (18, 26)),
        (28, (14, 20, 28)),
        (30, (16, 20, 30)),
    ],
)
def test_the_default_looks_follow_from_the_number_of_seeds(replicates, looks):
    """tests/statistics/test_against_simulated.py has the looks of other numbers."""
    assert default_looks(replicates) == looks


def test_without_a_control_all_pairs_of_groups_are_compared():
    design = fake_plans.plan(groups=("a", "b", "c"), cores=3, seeds=6).design
    assert design.comparisons == (Contrast(a="a", b="b"), Contrast(a="a", b="c"), Contrast(a="b", b="c"))
    assert [boundary.open for boundary in design.boundaries] == [3, 2, 1]
    assert [boundary.alpha for boundary in design.boundaries] == pytest.approx([0.05 / 3, 0.025, 0.05])


def test_tested_groups_are_compared_only_with_the_control():
    design = fake_plans.plan(groups=("a", "b", "c", "d"), cores=4, seeds=6, control="c", untested=("d",)).design
    assert design.comparisons == (Contrast(a="a", b="c"), Contrast(a="b", b="c"))


def test_a_design_is_adjusted_for_positions_if_there_are_enough_pairs():
    plan_of_three = {"groups": ("a", "b", "c"), "cores": 3, "arithmetic": LOOSE}
    assert fake_plans.plan(seeds=6, arithmetic=LOOSE).design.adjusted
    free_design = fake_plans.plan(seeds=6).design
    assert (free_design.adjusted, free_design.positions_matter) == (False, False)
    assert not fake_plans.plan(**plan_of_three, seeds=6).design.adjusted
    assert fake_plans.plan(**plan_of_three, seeds=12, looks=(12,)).design.adjusted


def test_futility_stops_do_not_change_the_bounds_of_claims():
    plain_design, stops = (fake_plans.plan(seeds=20, **changes).design for changes in ({}, {"futility": 0.8}))
    bounds = stops.futility.nominal_p
    assert (plain_design.futility, stops.futility.power, stops.boundaries) == (None, 0.8, plain_design.boundaries)
    assert bounds == (pytest.approx(0.1256, abs=2e-4), 0.0)  # 2 (1 - Phi(z_0.1 / sqrt(0.7))) at 14 of 20
    assert extended(stops, 20).futility == stops.futility


def test_an_open_ended_rule_is_printed_with_its_evidence_bound():
    """tests/golden/experiments has the rules of other designs."""
    single_rule = "paired t, not adjusted for device and order; anytime-valid t after every pair from the 6th on, "
    single_rule += "decided at an e-value of 20"
    assert rule(open_ended()) == single_rule
    design_of_three = designed(6, 3, looks=(), boundaries=(), anytime_after=0)
    assert rule(design_of_three) == f"{single_rule} times the 3 comparisons that share alpha"


def test_a_design_of_fewer_than_six_seeds_has_no_boundary():
    design = fake_plans.plan(seeds=5).design
    assert design.boundaries == ()
    assert rule(design) == "none: a verdict needs at least 6 seeds"


@pytest.mark.parametrize(
    ("looks", "positions", "is_too_small"),
    [((6,), 2, False), ((6,), 3, True), ((7,), 3, False), ((6, 10), 3, True), ((), 2, False), ((), 3, True)],
)
def test_an_adjustment_needs_four_more_seeds_than_positions(looks, positions, is_too_small):
    assert msgspec.structs.replace(designed(6), looks=looks, positions=positions).too_few_to_adjust == is_too_small


def test_only_the_first_extension_of_a_plan_makes_its_bound_stricter():
    open_ = fake_plans.plan(seeds=6, open_ended=True).design
    assert (open_.looks, open_.boundaries, open_.anytime_after, open_.evidence) == ((), (), 0, pytest.approx(20.0))
    design = fake_plans.plan(seeds=6).design
    longer_design = extended(design, 6)
    assert (longer_design.anytime_after, longer_design.evidence) == (6, pytest.approx(100.0))
    assert longer_design.boundaries == design.boundaries
    assert extended(longer_design, 12) == longer_design


def test_an_extended_plan_has_the_same_blocks_as_a_longer_plan():
    short_plan, long_plan = (fake_plans.plan(cores=4, seeds=n, looks=(n,)) for n in (8, 14))
    added_blocks, planned_blocks = (
        [[(run.ref, run.env_devices, run.policy_file, run.log_file) for run in block.runs] for block in blocks]
        for blocks in (extend(short_plan, short_plan.design, 8, 6).blocks, long_plan.blocks[8:])
    )
    assert added_blocks == planned_blocks


def test_claims_for_any_shape_are_part_of_the_design_and_of_its_rule():
    any_shape = designed(20, worst=10.0, shape="any")
    assert any_shape.any_shape
    assert any_shape.largest_difference() == 90.0  # from chance to 100 %
    assert any_shape.largest_difference((5.0, 60.0)) == 95.0
    assert "every interval also holds for any shape" in rule(any_shape)
    assert not designed(20, worst=10.0).any_shape


def test_claims_for_any_shape_of_an_open_range_are_refused():
    with pytest.raises(UsageError, match="needs the best possible outcome, because"):
        fake_plans.plan(seeds=20, shape="any")
