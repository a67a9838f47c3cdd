"""`--eval-episodes`: what a number and what auto come to, and what the choice depends on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans.requests import experiment, machine, planned

from esper_ab.settings.eval_episodes import DEFAULT_EVAL_EPISODES, EvaluationNoise, choose_eval_episodes
from esper_ab.stats.evaluation_noise import Components


def noise(policy: float, episode: float, ratio_high: float, evaluation_episode_s: float = 0.1) -> EvaluationNoise:
    found = Components(
        runs=12,
        eval_episodes=16,
        policy=policy,
        episode=episode,
        share=0.5,
        share_low=0.4,
        share_high=0.6,
        ratio_high=ratio_high,
    )
    return EvaluationNoise(
        components=found, episodes=3, n_envs=4, training_episode_s=0.1, evaluation_episode_s=evaluation_episode_s
    )


def test_a_number_is_a_number() -> None:
    chosen = choose_eval_episodes(experiment(eval_episodes=7))
    assert (chosen.eval_episodes, chosen.why) == (7, "")
    assert chosen == choose_eval_episodes(experiment(eval_episodes=7, n_envs=5), noise(1, 1, 1))


def test_auto_is_the_default_and_without_a_calibration_it_is_16_in_whole_rounds_of_environments() -> None:
    assert experiment().eval_episodes == "auto"
    for changes, number in (({}, DEFAULT_EVAL_EPISODES), ({"n_envs": 6}, 18)):
        found = choose_eval_episodes(experiment(**changes))
        assert planned(experiment(**changes), machine()).experiment.eval_episodes == found.eval_episodes == number
        assert "the default of 16" in found.why


def test_the_number_is_part_of_the_digest_and_the_same_for_every_run() -> None:
    plans = [planned(experiment(eval_episodes=eval_episodes), machine()) for eval_episodes in (8, 9)]
    assert plans[0].digest != plans[1].digest
    for plan in plans:
        assert {spec.eval_episodes for block in plan.blocks for spec in block.runs} == {plan.experiment.eval_episodes}
    same = planned(experiment(eval_episodes=choose_eval_episodes(experiment()).eval_episodes), machine())
    assert same.digest == planned(experiment(), machine()).digest


@given(st.integers(0, 2**31), st.integers(6, 40), st.sampled_from(["a", "b"]), st.floats(0.1, 9.0))
def test_it_depends_on_nothing_that_an_experiment_finds_or_is_called(rng_seed, replicates, name, margin) -> None:
    """Not on its randomness, name, groups or margin: only on task, budget and calibration."""
    other = experiment(("x", "y", "z"), rng_seed=rng_seed, seeds=replicates, name=name, margin=margin)
    assert choose_eval_episodes(other) == choose_eval_episodes(experiment())


def test_an_outcome_of_training_needs_one_episode() -> None:
    found = choose_eval_episodes(experiment(outcome_over="last-tenth", n_envs=6))
    assert found.eval_episodes == 6
    assert "training episodes" in found.why


def test_a_calibration_of_ones_own_takes_precedence() -> None:
    own = noise(100.0, 1.0, 200.0)
    assert choose_eval_episodes(experiment(), own).eval_episodes == 4
    assert "by --calibration" in choose_eval_episodes(experiment(), own).why


def test_no_policy_variance_is_bounded_and_dear_hosts_are_fewer() -> None:
    none = noise(-3.0, 60.0, -0.01)
    assert none.next_eval_episodes == 4 * (12 + 4)
    assert (
        noise(1.0, 60.0, 0.02, evaluation_episode_s=1.0).next_eval_episodes < noise(1.0, 60.0, 0.02).next_eval_episodes
    )
    assert none.variance_times(32) == pytest.approx(0.8)  # a share of 0.4 is sure, and half of it is left
    assert noise(1.0, 16.0, 1.0).variance_times(4) == pytest.approx(5 / 2)
    assert none.cost_times(32) == pytest.approx((16 + 32) / (16 + 16))
    assert none.cost_share == pytest.approx(0.5)
