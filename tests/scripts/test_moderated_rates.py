"""The simulated plans with moderated variances claim what the package claims."""

import moderated_rates
import msgspec
import numpy as np
import pytest
from moderated_rates import Law, Plan
from msgspec import UNSET
from support.outcomes import compared_designs

from esper_ab.design.design import Boundary, Contrast
from esper_ab.design.moderation import ModeratedVariances
from esper_ab.stats.pair import Pair, Pairs
from esper_ab.verdict.looks import progress_after

EXPERIMENTS = 30
LAW = Law(correlation=0.5, up=1.2, sds=(1.0, 2.0, 1.0))


def package_design(plan):
    """Return the design of a simulated plan, with its bounds."""
    count = len(plan.contrasts)
    bounds = moderated_rates.bounds(plan)
    return msgspec.structs.replace(
        compared_designs.design(20),
        margin=moderated_rates.MARGIN,
        comparisons=tuple(Contrast(a=f"{a}", b=f"{b}") for a, b in plan.contrasts),
        looks=plan.looks,
        boundaries=tuple(
            Boundary(open=n, alpha=0.05 / n, nominal_p=tuple(bounds[n - 1].tolist())) for n in range(count, 0, -1)
        ),
        positions=plan.groups,
        adjusted=plan.adjusted,
        positions_matter=plan.adjusted,
        early_stop=plan.early_stop,
        variances=ModeratedVariances(prior_df=plan.prior_df) if plan.prior_df else UNSET,
    )


def package_claims(plan, design, outcomes):
    """Return the direction of each claim in one experiment; `outcomes` are [seeds, groups]."""
    data = {}
    for contrast, (a, b) in zip(design.comparisons, plan.contrasts, strict=True):
        data[contrast] = Pairs.of(
            Pair(replicate=seed, a=row[a], b=row[b], position_a=side_a, position_b=side_b)
            for seed, (row, (side_a, side_b)) in enumerate(
                zip(outcomes, moderated_rates.sides(plan, (a, b)), strict=True)
            )
        )
    progress = progress_after(design, data, plan.seeds)
    return [of.direction if of.decision == "crossed" else 0 for of in progress.values()]


@pytest.mark.parametrize(
    "plan",
    [
        Plan(3, 16),
        Plan(4, 16, control=True),
        Plan(3, 16, early_stop=False),
        Plan(3, 16, prior=0),
        Plan(3, 16, adjusted=True),
        Plan(4, 8),
    ],
    ids=str,
)
def test_simulated_claims_are_those_of_the_package(plan):
    outcomes = LAW.draw(np.random.default_rng(5), EXPERIMENTS, plan.seeds, plan.groups)
    simulated = moderated_rates.claims(plan, outcomes)
    design = package_design(plan)
    assert np.array_equal(simulated, [package_claims(plan, design, experiment) for experiment in outcomes])
    assert 0 < (simulated != 0.0).sum() < simulated.size


def test_a_smaller_difference_is_found_less_often():
    found = [moderated_rates.rate(Plan(3, 6), Law(up=up), experiments=400) for up in (0.5, 2.0)]
    assert found[0] < found[1]


def test_laws_have_equal_means_and_the_spread_that_they_are_named_for():
    rng = np.random.default_rng(1)
    for shape in ("normal", "learns or not", "lognormal"):
        outcomes = Law(shape=shape).draw(rng, 2_000, 20, 3).reshape(-1, 3)
        assert outcomes.std(axis=0) == pytest.approx(np.ones(3), abs=0.15)
        assert np.ptp(outcomes.mean(axis=0)) < 0.05


@pytest.mark.parametrize("shape", ["skewness 2", "skewness 3.5", "15 % fall by 20", "5 % fall by 50"])
def test_the_last_group_may_have_a_shape_of_its_own_but_no_other_mean(shape):
    outcomes = Law(sds=(0.15,), last_shape=shape).draw(np.random.default_rng(1), 4_000, 20, 3).reshape(-1, 3)
    assert outcomes[:, :2].std() == pytest.approx(0.15, abs=0.01)
    assert outcomes[:, 2].std() > 0.9
    assert outcomes[:, 2].mean() == pytest.approx(0.0, abs=0.2)


def test_a_group_that_is_worse_by_the_margin_is_seldom_called_not_worse():
    plan = Plan(4, 20, control=True)
    assert moderated_rates.false_not_worse(plan, Law(), experiments=2_000) == pytest.approx(4.3, abs=2.0)
