"""Gains per parameter that was added to a host, and shares of kept seed modules."""

import pytest
from support.journals.ready_journals import planted_effect, three_groups, without_evaluations

from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.kinds.growth.worth import gains_per_kparam, kept_share


def gains_per_parameter(events):
    history = fold(events)
    return gains_per_kparam(history, outcomes(history))


def test_the_gain_per_parameter_needs_a_group_that_never_grows() -> None:
    assert set(gains_per_parameter(planted_effect()).values()) == {None}
    by_run = outcomes(fold(three_groups()))
    gains = gains_per_parameter(three_groups())
    shaped_outcomes = by_run["shaped/2"]
    wait = by_run["wait/2"]
    assert gains["shaped/2"] == pytest.approx(
        (shaped_outcomes.evaluated - wait.evaluated) / (shaped_outcomes.measures["params_added"] / 1000)
    )
    assert gains["wait/2"] is None


def test_the_share_of_kept_seed_modules_needs_seed_modules() -> None:
    by_run = outcomes(fold(three_groups()))
    fossilized, pruned_count = (by_run["shaped/2"].measures[name] for name in ("fossilized", "pruned"))
    assert kept_share(by_run["shaped/2"]) == pytest.approx(fossilized / (fossilized + pruned_count))
    assert kept_share(by_run["wait/2"]) is None
    assert kept_share(outcomes(fold(without_evaluations(three_groups())))["shaped/2"]) is None
