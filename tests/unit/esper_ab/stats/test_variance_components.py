"""Variance components: unbiased, their limits cover, and what they cannot tell is not told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.variance_components import components

EPISODES = 6


def drawn(rng, runs, policy_sd, episode_sd, mean=50.0):
    return mean + policy_sd * rng.standard_normal((runs, 1)) + episode_sd * rng.standard_normal((runs, EPISODES))


@pytest.mark.parametrize("policy_sd", [0.0, 2.0, 6.0])
def test_estimates_are_unbiased_and_limits_cover(policy_sd):
    """Two sets with means of their own; four standard errors, and 80 % to four points over 2,000 draws."""
    rng = np.random.default_rng(7)
    episode_sd = 5.0
    draws = 2_000
    found = [
        components([drawn(rng, 8, policy_sd, episode_sd), drawn(rng, 5, policy_sd, episode_sd, 9.0)])
        for _ in range(draws)
    ]
    policies = np.array([one.policy for one in found])
    eval_episodes = np.array([one.episode for one in found])
    assert policies.mean() == pytest.approx(policy_sd**2, abs=4 * policies.std() / draws**0.5)
    assert eval_episodes.mean() == pytest.approx(episode_sd**2, abs=4 * eval_episodes.std() / draws**0.5)
    share = (episode_sd**2 / EPISODES) / (policy_sd**2 + episode_sd**2 / EPISODES)
    covered = np.mean([one.share_low <= share <= one.share_high for one in found])
    above = np.mean([one.ratio_high >= (policy_sd / episode_sd) ** 2 for one in found])
    assert covered == pytest.approx(0.8, abs=0.04)
    assert above == pytest.approx(0.8, abs=0.04)


@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.floats(0.0, 5.0))
def test_the_variances_are_those_of_the_outcomes(key, runs, policy_sd):
    """Policy + episode / m is the variance of the means over episodes, exactly, whatever the split."""
    x = drawn(np.random.default_rng(key), runs, policy_sd, 3.0)
    found = components([x])
    assert found.policy + found.episode / EPISODES == pytest.approx(x.mean(axis=1).var(ddof=1))
    assert found.share == pytest.approx(found.episode / EPISODES / x.mean(axis=1).var(ddof=1))
    assert found.variance(EPISODES) >= found.episode / EPISODES


def test_all_pairs_of_three_groups_count_as_two():
    """Each pair's variance is twice a run's; what the third pair adds is no degree of freedom, so limits stay wide."""
    rng = np.random.default_rng(3)
    a, b, c = (drawn(rng, 9, 2.0, 3.0) for _ in range(3))
    three = components([a - b, b - c, a - c], independent=2)
    two = components([a - b, b - c])
    one = components([a, b, c])
    assert three.share_high / three.share_low == pytest.approx(two.share_high / two.share_low)
    assert three.policy > 1.2 * one.policy


@pytest.mark.parametrize(
    "sets",
    [
        [],
        [np.ones((2, 4))],
        [np.arange(3.0)[:, None]],
        [np.ones((5, 4))],
        [np.arange(5.0)[:, None] + np.zeros((5, 4))],
        [np.full((5, 4), np.nan)],
    ],
)
def test_too_little_tells_nothing(sets):
    """No set, one degree of freedom, one episode each, nothing that varies, episodes alike, no number."""
    assert components(sets) is None
