"""Evaluation noise in words: a share is 100 % at most, and a promise is what is sure."""

from __future__ import annotations

import pytest

from esper_ab.design.episodes_text import next_text, share_text
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.evaluation_noise import Components

# Of 24 pairs: without any policy variance to be seen. Of 6 pairs, with less than the episodes that were chosen.
CLIPPED = Components(
    runs=24, eval_episodes=16, policy=-5.0, episode=280.0, share=1.39, share_low=0.87, share_high=1.99, ratio_high=0.0
)
SEEN = Components(
    runs=6, eval_episodes=24, policy=2.0, episode=180.0, share=0.79, share_low=0.25, share_high=1.49, ratio_high=0.2
)


def noise(components: Components, episodes: int = 24, n_envs: int = 8) -> EvaluationNoise:
    return EvaluationNoise(
        components=components, episodes=episodes, n_envs=n_envs, training_episode_s=1.0, evaluation_episode_s=1.0
    )


@pytest.mark.parametrize(
    ("components", "words"), [(CLIPPED, "100 % (80 % limits 87 to 100)"), (SEEN, "79 % (80 % limits 25 to 100)")]
)
def test_a_share_is_all_of_it_at_most(components: Components, words: str) -> None:
    assert share_text(noise(components)) == words


def test_more_episodes_promise_what_the_lower_limit_of_the_share_gives() -> None:
    """Of 800 episodes the share of 0.87 falls to a fiftieth: 0.13 + 0.87 / 50, in the place of 1 / 50."""
    found = noise(CLIPPED)
    assert found.next_eval_episodes == 800
    assert found.variance_times(800) == pytest.approx(0.13 + 0.87 * 16 / 800)
    text = next_text(found)
    assert text.startswith("--eval-episodes 800: at most 0.15 times the variance at 4.63 times the cost of a run, so ")
    assert "at least 85 % fewer pairs (a verdict needs 6) and at least 32 % less compute for" in text


def test_fewer_episodes_cost_what_is_estimated() -> None:
    found = noise(SEEN, episodes=6, n_envs=6)
    assert found.next_eval_episodes == 12
    times = (2.0 + 180 / 12) / (2.0 + 180 / 24)
    assert found.variance_times(12) == pytest.approx(times)
    assert f"--eval-episodes 12: {times:.2f} times the variance" in next_text(found)
    assert f"so {100 * (times - 1):.0f} % more pairs and" in next_text(found)
    assert "at most" not in next_text(found)
