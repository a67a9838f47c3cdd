"""Measurements on digits apply only to similar plans and equal the numbers of a study and of the evidence page."""

import json
import re
import statistics
from pathlib import Path

import pytest
from support.plans.requests import experiment, group, machine, planned

from esper_ab.contracts.settings import PPOSettings, RewardSettings
from esper_ab.plan.budget import ENOUGH_EPISODES, enough_episodes, known_sd_of_pairs

EVIDENCE = Path(__file__).parents[4] / "docs/evidence"


def sd_on_the_page(budget: str) -> float:
    """Return the SD of pairs of shaped and simplified that learning.md has for a budget."""
    page = (EVIDENCE / "learning.md").read_text()
    (row,) = re.findall(rf"^\| {budget} \| shaped - simplified \| 12 \| [^|]+\| ([\d.]+) ", page, re.M)
    return float(row)


def sd_in_the_study(name: str) -> float:
    """Return the same of the pairs of a study."""
    comparisons = json.loads((EVIDENCE / "studies" / name / "verdict.json").read_text())["comparisons"]
    (pairs,) = (item["pairs"] for item in comparisons if (item["a"], item["b"]) == ("shaped", "simplified"))
    return round(statistics.stdev(pair["a"] - pair["b"] for pair in pairs), 1)


def groups_with_rewards(*modes, **settings):
    return tuple(group(mode.partition(":")[0], reward=RewardSettings(mode=mode), **settings) for mode in modes)


@pytest.mark.parametrize(
    ("sd", "episodes"), [(sd_in_the_study("trained-or-random"), 12), (sd_on_the_page("60 x 16"), 120)]
)
def test_the_known_sd_of_pairs_equals_the_measured_one(sd, episodes):
    request = experiment(groups=groups_with_rewards("shaped", "simplified"), n_envs=8, episodes=episodes)
    plan = planned(request, machine()).experiment
    assert known_sd_of_pairs(plan) == sd
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
