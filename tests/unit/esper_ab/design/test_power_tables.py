"""Power tables: the effect of another number of evaluation episodes, and the chance of each verdict."""

import pytest

from esper_ab.design.power_tables import Known, answer
from esper_ab.design.power_text import power_text
from esper_ab.design.scheme import PowerQuestion
from esper_ab.design.simulation import MARGINS
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.evaluation_noise import Components

SEEN = Components(
    runs=6, eval_episodes=24, policy=2.0, episode=180.0, share=0.79, share_low=0.25, share_high=1.49, ratio_high=0.2
)


def test_the_pairs_needed_grow_in_proportion_to_the_variance():
    noise = EvaluationNoise(components=SEEN, episodes=6, n_envs=8, training_episode_s=1.0, evaluation_episode_s=1.0)
    known_spread = Known(source="given", sd=3.5, df=9, rho=0.3, noise=noise)
    power_answer = answer(known_spread, 6, PowerQuestion(margin=2.5), rows=(6,))
    times = noise.variance_times(16)
    assert times > 1.3
    best_episodes = power_answer.eval_episodes
    assert (best_episodes.eval_episodes, best_episodes.best) == (24, 16)
    assert best_episodes.sd == pytest.approx(power_answer.tables[0].sd * times**0.5)
    need_before = power_answer.tables[0].needed
    assert best_episodes.needed.replicates / need_before.replicates == pytest.approx(times, rel=0.1)
    assert best_episodes.needed.low / need_before.low == pytest.approx(times, rel=0.15)
    assert best_episodes.needed.high / need_before.high == pytest.approx(times, rel=0.1)


def test_the_chance_of_better_at_the_margin_is_the_power_of_the_first_table():
    power_answer = answer(Known(source="given", sd=3.5, rho=0.3), 16, PowerQuestion(margin=2.5), rows=(6, 16))
    (row,) = (row for row in power_answer.tables[0].rows if row.replicates == 16)
    at_margin = power_answer.endings[MARGINS.index(1.0)]
    # Some of the differences that are found are called small, and some small ones are EQUIVALENT and not found.
    assert row.power - at_margin.small - 0.015 < at_margin.better < row.power + 0.015


def test_the_power_text_has_the_chance_of_each_verdict():
    power_answer = answer(Known(source="given", sd=3.5, rho=0.3), 6, PowerQuestion(margin=2.5), rows=(6,))
    text = power_text(power_answer)
    assert "Chance of each verdict with 6 seeds and pair correlation 0.3 by the true difference:" in text
    assert text.splitlines()[-1].split()[:3] == ["seeds", "on", "average"]
