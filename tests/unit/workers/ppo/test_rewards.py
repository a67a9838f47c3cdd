"""Reward scaling and clipping against hand-computed sums."""

import numpy as np
import pytest

from esper_ab.contracts.settings import PPOSettings
from workers.ppo.rewards import RewardScale

ALL_VALID = np.ones((3, 1), dtype=bool)


def scale(**settings: float) -> RewardScale:
    return RewardScale(PPOSettings(gamma=0.5, **settings))


def column(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float64)[:, None]


def ended(*flags: int) -> np.ndarray:
    return np.array(flags, dtype=bool)[:, None]


def test_rewards_stay_as_they_are_by_default():
    rewards = column(1.0, -50.0, 3.0)
    assert scale().changed(rewards, ended(0, 0, 1), ALL_VALID) is rewards
    assert scale().state() == {}


def test_rewards_are_divided_by_the_standard_deviation_of_their_discounted_sum():
    """Sums 4, 2 + 2 and, in another episode, 1; nothing is subtracted, and later rollouts add to the moments."""
    rewards_scale = scale(reward_scaling=True)
    rewards = column(4.0, 2.0, 1.0)
    first = rewards_scale.changed(rewards, ended(0, 1, 1), ALL_VALID)
    assert first == pytest.approx(rewards / np.std([4.0, 4.0, 1.0]))
    second = rewards_scale.changed(rewards * 2, ended(0, 1, 1), ALL_VALID)
    assert second == pytest.approx(rewards * 2 / np.std([4.0, 4.0, 1.0, 8.0, 8.0, 2.0]))


def test_the_sum_goes_on_in_the_next_rollout_where_the_episode_does():
    """Sums 1, 1.5, 1.75, then 1.875, 1, 1.5."""
    rewards = column(1.0, 1.0, 1.0)
    continuing_scale = scale(reward_scaling=True)
    continuing_scale.changed(rewards, ended(0, 0, 0), ALL_VALID)
    restored_scale = scale(reward_scaling=True)
    restored_scale.load(continuing_scale.state())
    sums = [1.0, 1.5, 1.75, 1.875, 1.0, 1.5]
    for reward_scale in (continuing_scale, restored_scale):
        scaled_rewards = reward_scale.changed(rewards, ended(1, 0, 1), ALL_VALID)
        assert scaled_rewards == pytest.approx(rewards / np.std(sums))
        assert reward_scale.open_sums is None
    forgetting_scale = scale(reward_scaling=True)
    forgetting_scale.changed(rewards, ended(0, 0, 0), ALL_VALID)
    forgetting_scale.forget(np.array([True]))
    scaled_rewards = forgetting_scale.changed(rewards, ended(1, 0, 1), ALL_VALID)
    assert scaled_rewards == pytest.approx(rewards / np.std([1.0, 1.5, 1.75, 1.0, 1.0, 1.5]))


def test_invalid_steps_and_equal_sums_do_not_set_the_scale():
    reward_scale = scale(reward_scaling=True)
    rewards = column(7.0, 0.0, 0.0)
    valid_mask = np.array([[True], [False], [False]])
    assert reward_scale.changed(rewards, ended(1, 1, 1), valid_mask).tolist() == rewards.tolist()
    assert reward_scale.sums.moments.count == 1


def test_rewards_are_clipped_after_scaling():
    rewards = column(4.0, -50.0, 0.25)
    assert scale(reward_clip=1.0).changed(rewards, ended(0, 0, 1), ALL_VALID).ravel().tolist() == [1.0, -1.0, 0.25]
    both = scale(reward_clip=1.5, reward_scaling=True).changed(rewards, ended(1, 1, 1), ALL_VALID)
    assert both == pytest.approx(np.clip(rewards / np.std([4.0, -50.0, 0.25]), -1.5, 1.5))
