"""The contract of every reward mode; a new file in workers/kinds/growth/rewards is tested automatically."""

from copy import deepcopy
from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest
from support.rewards.reward_facts import GOLDEN, golden_case, make_facts, random_facts, take_envs

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.reward_lookup import find_reward

MODES = catalog.names("workers.kinds.growth.rewards")
VARIANTS = [
    RewardSettings(),
    RewardSettings(family="loss"),
    RewardSettings(disable_pbrs=True, disable_terminal_reward=True, disable_anti_gaming=True),
]
SHAPES = [(1, 1), (7, 1), (5, 3), (16, 4)]
STEPS = [1, 13, 25]


@pytest.fixture(params=MODES)
def reward(request):
    return find_reward(request.param)


def cases():
    rng = np.random.default_rng(20)
    return [(random_facts(rng, shape, step), settings) for shape, step, settings in product(SHAPES, STEPS, VARIANTS)]


def test_a_reward_is_finite_float64_of_the_right_shape(reward):
    for facts, settings in cases():
        values = reward(facts, settings)
        assert values.dtype == np.float64
        assert values.shape == facts.op.shape
        assert np.isfinite(values).all()


def test_a_reward_is_a_pure_function(reward):
    for facts, settings in cases():
        original_facts = deepcopy(facts)
        first_rewards = reward(facts, settings)
        np.testing.assert_array_equal(reward(facts, settings), first_rewards)
        np.testing.assert_equal(asdict(facts), asdict(original_facts))


def test_a_reward_treats_environments_independently(reward):
    for facts, settings in cases():
        batch_rewards = reward(facts, settings)
        separate_rewards = [reward(take_envs(facts, [env]), settings)[0] for env in range(len(batch_rewards))]
        np.testing.assert_allclose(batch_rewards, separate_rewards, rtol=0, atol=1e-12)


def test_a_reward_ignores_the_entries_of_empty_slots(reward):
    garbage = {"stage": 99, "previous_stage": -7, "epochs_in_stage": 1 << 40, "age": 1}
    garbage |= dict.fromkeys(("contribution", "interaction_sum"), np.inf)
    garbage |= dict.fromkeys(("total_improvement", "acc_at_germination"), -np.inf)
    for settings, op in product(VARIANTS, range(6)):
        decided_facts = {"potential_before": [1.0, 0.0, 5.5], "op": op, "slot": -1 if op == 0 else 1}
        clean_facts = make_facts((2, 3), 25, **decided_facts)
        dirty_facts = make_facts((2, 3), 25, **decided_facts, **garbage)
        np.testing.assert_array_equal(reward(dirty_facts, settings), reward(clean_facts, settings))


def test_permuting_slots_changes_no_reward(reward):
    rng = np.random.default_rng(22)
    order = np.array([2, 0, 1])
    for settings in VARIANTS:
        facts = random_facts(rng, (9, 3), 25)
        seeds = {name: values[:, order] for name, values in vars(facts.seeds).items()}
        slot = np.where(facts.slot < 0, -1, np.argsort(order)[facts.slot])
        permuted_facts = replace(facts, seeds=replace(facts.seeds, **seeds), slot=slot)
        np.testing.assert_allclose(reward(permuted_facts, settings), reward(facts, settings), rtol=0, atol=1e-12)


@pytest.mark.parametrize("section", [name for name in GOLDEN if name in MODES])
def test_a_reward_equals_the_golden_values_for_one_slot(section):
    reward = find_reward(section)
    for case in GOLDEN[section]:
        assert reward(*golden_case(case, section))[0] == pytest.approx(case["expected"]["reward"], abs=1e-9), case["id"]
