"""Measurements on digits apply only to similar plans and equal the numbers of two studies."""

import json
import statistics
from pathlib import Path

import pytest
from support.plans.requests import experiment, group, machine, planned

from esper_ab.contracts.settings import PPOSettings, RewardSettings
from esper_ab.plan.budget import ENOUGH_EPISODES, enough_episodes, known_sd_of_pairs

EVIDENCE = Path(__file__).parents[4] / "docs/evidence"


def sd_in_the_study(name: str) -> float:
    """Return the SD of the pairs of shaped and simplified in a study."""
    comparisons = json.loads((EVIDENCE / "studies" / name / "verdict.json").read_text())["comparisons"]
    (pairs,) = (item["pairs"] for item in comparisons if (item["a"], item["b"]) == ("shaped", "simplified"))
    return round(statistics.stdev(pair["a"] - pair["b"] for pair in pairs), 1)


def groups_with_rewards(*modes, **settings):
    return tuple(group(mode.partition(":")[0], reward=RewardSettings(mode=mode), **settings) for mode in modes)


@pytest.mark.parametrize(("study", "episodes"), [("trained-or-random", 12), ("trained-or-planned", 120)])
def test_the_known_sd_of_pairs_equals_the_measured_one(study, episodes):
    request = experiment(groups=groups_with_rewards("shaped", "simplified"), n_envs=8, episodes=episodes)
    plan = planned(request, machine()).experiment
    assert known_sd_of_pairs(plan) == sd_in_the_study(study)
    assert enough_episodes(plan) == (None if episodes == ENOUGH_EPISODES // 8 else 120)


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": (group("a"), group("b", ppo=PPOSettings(lr=1e-4)))},
        {"groups": (group("a"), group("b"))},
        {"groups": groups_with_rewards("shaped", "sparse", ppo=PPOSettings(lr=0.0))},
    ],
)
def test_groups_that_differ_in_more_than_rewards_have_no_known_sd(changes):
    plan = planned(experiment(**changes), machine()).experiment
    assert (enough_episodes(plan), known_sd_of_pairs(plan)) == (None, None)
