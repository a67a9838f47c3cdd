"""Measurements on digits apply only to similar plans and equal the numbers of the evidence page."""

import re
from pathlib import Path

import pytest
from support.plans.requests import experiment, group, machine, planned

from esper_ab.contracts.settings import PPOSettings, RewardSettings
from esper_ab.plan.budget import ENOUGH_EPISODES, enough_episodes, known_sd_of_pairs

PAGE = Path(__file__).parents[4] / "docs/evidence/learning.md"


def groups_with_rewards(*modes, **settings):
    return tuple(group(mode.partition(":")[0], reward=RewardSettings(mode=mode), **settings) for mode in modes)


@pytest.mark.parametrize(("budget", "episodes"), [("12 x 8", 12), ("60 x 16", 120)])
def test_the_known_sd_of_pairs_equals_the_number_on_the_evidence_page(budget, episodes):
    (row,) = re.findall(rf"^\| {budget} \| shaped - simplified \| 12 \| [^|]+\| ([\d.]+) ", PAGE.read_text(), re.M)
    request = experiment(groups=groups_with_rewards("shaped", "simplified"), n_envs=8, episodes=episodes)
    plan = planned(request, machine()).experiment
    assert known_sd_of_pairs(plan) == float(row)
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
