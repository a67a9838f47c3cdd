"""What every reward mode must keep; a new file in workers/rewards is taken in by itself."""

from copy import deepcopy
from dataclasses import fields

import numpy as np
import pytest
from support.reward_facts import GOLDEN, golden_case, make_facts, random_facts, take_envs

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import RewardSettings
from workers.user_rewards.lookup import find_reward

MODES = catalog.names("workers.rewards")
VARIANTS = [
    RewardSettings(),
    RewardSettings(family="loss"),
    RewardSettings(disable_pbrs=True, disable_terminal_reward=True, disable_anti_gaming=True),
]
SHAPES = [(1, 1), (7, 1), (5, 3), (16, 4)]
STEPS = [1, 13, 25]


def arrays(facts):
    return [getattr(part, field.name) for part in (facts, facts.seeds) for field in fields(part)]


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def reward(mode):
    return find_reward(mode)


def cases():
    rng = np.random.default_rng(20)
    return [(random_facts(rng, shape, step), settings) for shape in SHAPES for step in STEPS for settings in VARIANTS]


def test_finite_float64_of_the_right_shape(reward):
    for facts, settings in cases():
        values = reward(facts, settings)
        assert values.dtype == np.float64
        assert values.shape == facts.op.shape
        assert np.isfinite(values).all()


def test_pure(reward):
    for facts, settings in cases():
        before = deepcopy(facts)
        first = reward(facts, settings)
        np.testing.assert_array_equal(reward(facts, settings), first)
        for now, then in zip(arrays(facts), arrays(before), strict=True):
            if isinstance(now, np.ndarray):
                np.testing.assert_array_equal(now, then)


def test_each_environment_alone_gets_the_same(reward):
    for facts, settings in cases():
        together = reward(facts, settings)
        alone = [reward(take_envs(facts, [env]), settings)[0] for env in range(len(together))]
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


def test_entries_of_empty_slots_do_not_matter(reward):
    garbage = {
        "stage": 99,
        "previous_stage": -7,
        "epochs_in_stage": 1 << 40,
        "age": 1,
        "contribution": np.inf,
        "total_improvement": -np.inf,
        "interaction_sum": np.inf,
        "acc_at_germination": -np.inf,
    }
    for settings in VARIANTS:
        for op in range(6):
            decision = {"op": op, "slot": -1 if op == 0 else 1}
            clean = make_facts((2, 3), 25, potential_before=[1.0, 0.0, 5.5], **decision)
            dirty = make_facts((2, 3), 25, potential_before=[1.0, 0.0, 5.5], **decision, **garbage)
            np.testing.assert_array_equal(reward(dirty, settings), reward(clean, settings))


def test_permuting_slots_changes_nothing(reward):
    rng = np.random.default_rng(22)
    order = np.array([2, 0, 1])
    for settings in VARIANTS:
        facts = random_facts(rng, (9, 3), 25)
        names = [field.name for field in fields(facts.seeds)]
        seeds = type(facts.seeds)(**{name: getattr(facts.seeds, name)[:, order] for name in names})
        slot = np.where(facts.slot < 0, -1, np.argsort(order)[facts.slot])
        values = {field.name: getattr(facts, field.name) for field in fields(facts)}
        moved = type(facts)(**{**values, "seeds": seeds, "slot": slot})
        np.testing.assert_allclose(reward(moved, settings), reward(facts, settings), rtol=0, atol=1e-12)


@pytest.mark.parametrize("section", [name for name in GOLDEN if name in MODES])
def test_golden_single_slot(section):
    reward = find_reward(section)
    for case in GOLDEN[section]:
        assert reward(*golden_case(case, section))[0] == pytest.approx(case["expected"]["reward"], abs=1e-9), case["id"]
