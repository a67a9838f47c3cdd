"""Moderated variances in a design: the prior, the bounds that belong to it, and the words."""

import msgspec
import numpy as np
import pytest
from msgspec import UNSET
from support.outcomes.csv_outcomes import scales
from support.plans import fake_plans

from esper_ab.contracts.errors import UsageError
from esper_ab.design.bounds import find_bounds
from esper_ab.design.check import check_variances
from esper_ab.design.design import Design, extended, rule
from esper_ab.design.moderation import ModeratedVariances, moderation, prior_df_of
from esper_ab.design.plan_simulation import simulation_of
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.stats.distributions import t_sf
from esper_ab.verdict.analysis_plan import Rule

SIDES = ((0, 1),) * 20
LOOKS = (14, 20)
MODERATED = Rule(variances="moderated")


def design(seeds=20, **changes):
    return fake_plans.plan(6, "abc", seeds=seeds, variances="moderated", **changes).design


def test_own_variances_leave_no_trace_in_a_design():
    own = fake_plans.plan(6, "abc", seeds=6).design
    assert (own.variances, own.prior_df) == (UNSET, 0)
    assert b"variances" not in msgspec.json.encode(own)


def test_a_design_keeps_its_prior_when_it_is_stored():
    stored = msgspec.json.decode(msgspec.json.encode(design()), type=Design)
    assert stored == design()
    assert (stored.variances, stored.prior_df) == (ModeratedVariances(prior_df=2), 2)


@pytest.mark.parametrize(("comparisons", "df"), [(2, 1), (3, 2), (15, 4)])
def test_the_prior_follows_from_the_number_of_comparisons(comparisons, df):
    assert prior_df_of(moderation("moderated", comparisons)) == df
    assert prior_df_of(moderation("own", comparisons)) == 0


def test_bounds_and_futility_are_those_of_more_degrees_of_freedom():
    stopping = design(30, futility=0.8)
    own = fake_plans.plan(6, "abc", seeds=30, futility=0.8).design
    assert stopping.boundary(3).nominal_p != own.boundary(3).nominal_p
    assert stopping.futility.nominal_p != own.futility.nominal_p


@pytest.mark.parametrize("prior_df", [1, 4])
def test_looks_at_these_bounds_err_in_alpha_under_the_model_of_moderated_variances(prior_df):
    """A comparison's variance follows an inverse chi-squared law around a known common one, as Smyth (2004) assumes."""
    (bounds,) = find_bounds(SIDES, 1, LOOKS, (0.05,), prior_df=prior_df)
    rng = np.random.default_rng(3)
    paths = 100_000
    sd = np.sqrt(prior_df / rng.chisquare(prior_df, paths))
    differences = rng.standard_normal((LOOKS[-1], paths)) * sd
    rejected = np.zeros(paths, dtype=bool)
    for look, bound in zip(LOOKS, bounds, strict=True):
        used = differences[:look]
        df = look - 1
        variance = (prior_df * 1.0 + df * used.var(axis=0, ddof=1)) / (prior_df + df)
        t = used.mean(axis=0) / np.sqrt(variance / look)
        rejected |= 2.0 * t_sf(np.abs(t), df + prior_df) <= bound
    assert rejected.mean() == pytest.approx(0.05, abs=4.0 * np.sqrt(0.05 * 0.95 / paths))


def test_power_counts_the_degrees_of_freedom_of_the_prior():
    own = fake_plans.plan(6, "abc", seeds=6).design
    assert simulation_of(design(6)).power(1.5) > simulation_of(own).power(1.5)


def test_the_rule_names_the_prior_and_the_own_variance_of_an_extension():
    text = rule(extended(design(), 20))
    assert "variances are moderated: that of each comparison is shrunk to the mean of all" in text
    assert "counts as 2 degrees of freedom" in text
    assert "after 20 seeds, anytime-valid t of the comparison's own variance after every pair" in text


def test_the_rule_of_several_tasks_says_that_each_shares_its_own_variances():
    plan = make_external_plan(tuple("abc"), [str(seed) for seed in range(8)], scales(tasks=("x", "y")), MODERATED)
    assert plan.design.prior_df == 2
    assert "that of each comparison is shrunk to the mean of those in its task" in rule(plan.design)


def test_a_single_comparison_has_nothing_to_share():
    with pytest.raises(UsageError, match="the plan has only 1"):
        check_variances("moderated", 1)
    check_variances("moderated", 2)
    check_variances("own", 1)
