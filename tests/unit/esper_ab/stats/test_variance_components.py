"""Variance components: unbiased estimates, coverage of their limits, and data without an estimate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.variance_components import components

EPISODES = 6


def draw_outcomes(rng, runs, policy_sd, episode_sd, mean=50.0):
    return mean + policy_sd * rng.standard_normal((runs, 1)) + episode_sd * rng.standard_normal((runs, EPISODES))


@pytest.mark.parametrize("policy_sd", [0.0, 2.0, 6.0])
def test_the_estimates_of_components_are_unbiased(policy_sd):
    """Two sets with different means; tolerances of four standard errors, and of four points on 80 %."""
    rng = np.random.default_rng(7)
    episode_sd = 5.0
    draws = 2_000
    estimates = [
        components([draw_outcomes(rng, 8, policy_sd, episode_sd), draw_outcomes(rng, 5, policy_sd, episode_sd, 9.0)])
        for _ in range(draws)
    ]
    policies = np.array([estimate.policy for estimate in estimates])
    eval_episodes = np.array([estimate.episode for estimate in estimates])
    assert policies.mean() == pytest.approx(policy_sd**2, abs=4 * policies.std() / draws**0.5)
    assert eval_episodes.mean() == pytest.approx(episode_sd**2, abs=4 * eval_episodes.std() / draws**0.5)
    share = (episode_sd**2 / EPISODES) / (policy_sd**2 + episode_sd**2 / EPISODES)
    coverage = np.mean([estimate.share_low <= share <= estimate.share_high for estimate in estimates])
    coverage_of_ratio = np.mean([estimate.ratio_high >= (policy_sd / episode_sd) ** 2 for estimate in estimates])
    assert coverage == pytest.approx(0.8, abs=0.04)
    assert coverage_of_ratio == pytest.approx(0.8, abs=0.04)


@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.floats(0.0, 5.0))
def test_the_components_add_up_to_the_variance_of_the_outcomes(key, runs, policy_sd):
    """Policy + episode / m is the variance of the means over episodes, exactly, whatever the split."""
    x = draw_outcomes(np.random.default_rng(key), runs, policy_sd, 3.0)
    estimate = components([x])
    assert estimate.policy + estimate.episode / EPISODES == pytest.approx(x.mean(axis=1).var(ddof=1))
    assert estimate.share == pytest.approx(estimate.episode / EPISODES / x.mean(axis=1).var(ddof=1))
    assert estimate.variance(EPISODES) >= estimate.episode / EPISODES


def test_three_groups_have_the_degrees_of_freedom_of_two_comparisons():
    """Each pair's variance is twice a run's; the third pair adds no degree of freedom, so limits stay wide."""
    rng = np.random.default_rng(3)
    a, b, c = (draw_outcomes(rng, 9, 2.0, 3.0) for _ in range(3))
    result_of_all_pairs = components([a - b, b - c, a - c], independent_sets=2)
    two_pairs = components([a - b, b - c])
    single_groups = components([a, b, c])
    assert result_of_all_pairs.share_high / result_of_all_pairs.share_low == pytest.approx(
        two_pairs.share_high / two_pairs.share_low
    )
    assert result_of_all_pairs.policy > 1.2 * single_groups.policy


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
def test_too_few_data_have_no_variance_components(sets):
    """No set, one degree of freedom, one episode each, nothing that varies, episodes alike, no number."""
    assert components(sets) is None
