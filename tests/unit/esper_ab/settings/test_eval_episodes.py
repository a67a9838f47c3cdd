"""`--eval-episodes`: an explicit number, or an automatic number and its inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans.requests import experiment, machine, planned

from esper_ab.settings.eval_episodes import DEFAULT_EVAL_EPISODES, EvaluationNoise, choose_eval_episodes
from esper_ab.stats.evaluation_noise import Components


def noise(policy: float, episode: float, ratio_high: float, evaluation_episode_s: float = 0.1) -> EvaluationNoise:
    components = Components(
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
        components=components, episodes=3, n_envs=4, training_episode_s=0.1, evaluation_episode_s=evaluation_episode_s
    )


def test_an_explicit_number_of_evaluation_episodes_is_kept() -> None:
    episode_choice = choose_eval_episodes(experiment(eval_episodes=7))
    assert (episode_choice.eval_episodes, episode_choice.why) == (7, "")
    assert episode_choice == choose_eval_episodes(experiment(eval_episodes=7, n_envs=5), noise(1, 1, 1))


def test_without_a_calibration_auto_chooses_16_evaluation_episodes() -> None:
    assert experiment().eval_episodes == "auto"
    for changes, number in (({}, DEFAULT_EVAL_EPISODES), ({"n_envs": 6}, 18)):
        choice = choose_eval_episodes(experiment(**changes))
        assert planned(experiment(**changes), machine()).experiment.eval_episodes == choice.eval_episodes == number
        assert "the default of 16" in choice.why


def test_the_number_of_evaluation_episodes_is_part_of_the_digest() -> None:
    plans = [planned(experiment(eval_episodes=eval_episodes), machine()) for eval_episodes in (8, 9)]
    assert plans[0].digest != plans[1].digest
    for plan in plans:
        assert {spec.eval_episodes for block in plan.blocks for spec in block.runs} == {plan.experiment.eval_episodes}
    equal_plan = planned(experiment(eval_episodes=choose_eval_episodes(experiment()).eval_episodes), machine())
    assert equal_plan.digest == planned(experiment(), machine()).digest


@given(st.integers(0, 2**31), st.integers(6, 40), st.sampled_from(["a", "b"]), st.floats(0.1, 9.0))
def test_the_automatic_number_of_episodes_depends_only_on_task_and_budget(rng_seed, replicates, name, margin) -> None:
    """Random seed, name, groups and margin do not change it."""
    changed_experiment = experiment(("x", "y", "z"), rng_seed=rng_seed, seeds=replicates, name=name, margin=margin)
    assert choose_eval_episodes(changed_experiment) == choose_eval_episodes(experiment())


def test_one_round_of_evaluation_suffices_for_an_outcome_of_training() -> None:
    choice = choose_eval_episodes(experiment(outcome_over="last-tenth", n_envs=6))
    assert choice.eval_episodes == 6
    assert "training episodes" in choice.why


def test_a_calibration_takes_precedence_over_the_default() -> None:
    calibrated = noise(100.0, 1.0, 200.0)
    assert choose_eval_episodes(experiment(), calibrated).eval_episodes == 4
    assert "by --calibration" in choose_eval_episodes(experiment(), calibrated).why


def test_an_estimate_without_policy_variance_limits_the_number_of_episodes() -> None:
    no_variance = noise(-3.0, 60.0, -0.01)
    assert no_variance.next_eval_episodes == 4 * (12 + 4)
    assert (
        noise(1.0, 60.0, 0.02, evaluation_episode_s=1.0).next_eval_episodes < noise(1.0, 60.0, 0.02).next_eval_episodes
    )
    assert no_variance.variance_times(32) == pytest.approx(0.8)  # a share of at least 0.4, halved
    assert noise(1.0, 16.0, 1.0).variance_times(4) == pytest.approx(5 / 2)
    assert no_variance.cost_times(32) == pytest.approx((16 + 32) / (16 + 16))
    assert no_variance.cost_share == pytest.approx(0.5)
