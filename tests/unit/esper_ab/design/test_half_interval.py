"""What halves the intervals, against the variances and Student's t from which it follows."""

import math

import pytest
from scipy import stats

from esper_ab.design.episodes_text import half_text
from esper_ab.design.half_interval import half_interval
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.evaluation_noise import Components


def noise(policy, episode, *, share=None, evaluation_episode_s=0.05):
    """Return the noise of runs with 8 evaluation episodes each, after 24 training episodes in 4 environments."""
    true_share = episode / 8 / (policy + episode / 8)
    components = Components(
        runs=12,
        eval_episodes=8,
        policy=policy,
        episode=episode,
        share=true_share,
        share_low=true_share if share is None else share,
        share_high=true_share,
        ratio_high=policy / episode,
    )
    return EvaluationNoise(
        components=components, episodes=24, n_envs=4, training_episode_s=1.0, evaluation_episode_s=evaluation_episode_s
    )


def half_width(pairs, variance):
    return stats.t.isf(0.025, pairs - 1) * math.sqrt(variance / pairs)


@pytest.mark.parametrize("pairs", [2, 6, 12, 30])
def test_the_pairs_are_the_fewest_that_halve_the_interval(pairs):
    needed = half_interval(noise(2.0, 4.0), pairs, 0.05).pairs
    goal = half_width(pairs, 2.5) / 2
    assert half_width(needed, 2.5) <= goal < half_width(needed - 1, 2.5)


def test_the_cheapest_plan_needs_fewer_pairs_with_more_episodes():
    found = half_interval(noise(1.0, 16.0), 12, 0.05)
    assert found.cheapest_eval_episodes > 8
    variance = 1.0 + 16.0 / found.cheapest_eval_episodes
    goal = half_width(12, 3.0) / 2
    assert half_width(found.cheapest_pairs, variance) <= goal < half_width(found.cheapest_pairs - 1, variance)
    assert found.cheapest_pairs < found.pairs


def test_a_plan_with_more_episodes_and_no_fewer_pairs_is_not_the_cheapest():
    measured = noise(0.5, 0.8)
    found = half_interval(measured, 3, 0.05)
    assert measured.next_eval_episodes == 56
    assert (found.cheapest_pairs, found.cheapest_eval_episodes) == (found.pairs, 8)


def test_more_episodes_alone_suffice_only_if_they_are_nearly_all_of_the_noise():
    assert half_interval(noise(2.0, 4.0), 12, 0.05).eval_episodes is None
    episodes = half_interval(noise(0.1, 16.0), 12, 0.05).eval_episodes
    assert episodes % 4 == 0
    assert 0.1 + 16.0 / episodes <= (0.1 + 2.0) / 4 < 0.1 + 16.0 / (episodes - 4)


def test_the_lower_limit_of_the_noise_bounds_what_more_episodes_promise():
    assert half_interval(noise(0.1, 16.0, share=0.7), 12, 0.05).eval_episodes is None


def test_one_pair_has_no_interval():
    assert half_interval(noise(2.0, 4.0), 1, 0.05) is None


def test_the_text_names_each_way():
    few = half_interval(noise(0.1, 16.0), 12, 0.05)
    assert half_text(few, 8, 12) == (
        f"about {few.pairs} pairs with 8 evaluation episodes each, or about {few.cheapest_pairs} with "
        f"{few.cheapest_eval_episodes}, at the least cost, or about {few.eval_episodes} episodes with 12 pairs"
    )
    three = half_text(half_interval(noise(2.0, 4.0), 3, 0.05), 8, 3)
    assert three.startswith("about 5 pairs (a verdict needs 6) with 8 evaluation episodes each")
    assert half_text(half_interval(noise(2.0, 4.0), 12, 0.05), 8, 12).endswith("; more episodes alone do not suffice")
