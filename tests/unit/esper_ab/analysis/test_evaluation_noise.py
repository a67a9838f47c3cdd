"""Estimates of evaluation noise against the parameters of the simulated journal."""

import json

import numpy as np
import pytest
from support.journals.audited_journals import evaluations, replace
from support.journals.ready_journals import without_evaluations
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.evaluation_noise import noise_of_pairs, noise_of_runs
from esper_ab.design.episodes_text import next_text
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.text import render_text
from esper_ab.report.verdict_json import render_verdict


def estimate_noise(**changes):
    return noise_of_pairs(fold(Synthetic(**changes).events()))


def test_estimated_components_match_the_simulated_variances():
    """Unpaired runs with SD 1.5 and episodes with SD 2: differences have variances of 4.5 and 8."""
    history = fold(Synthetic(replicates=200, eval_episodes=8, episodes=1, n_envs=2).events())
    pairs = noise_of_pairs(history).components
    runs = noise_of_runs(history).components
    assert pairs.episode == pytest.approx(2 * 4.0, rel=0.1)
    assert pairs.policy == pytest.approx(2 * 2.25, rel=0.35)
    assert (runs.runs, runs.eval_episodes) == (400, 8)
    assert runs.episode == pytest.approx(4.0, rel=0.1)
    assert runs.policy == pytest.approx(2.25, rel=0.5)


def test_greedy_episodes_do_not_affect_the_estimated_components():
    greedy_components, plain_components = (
        estimate_noise(groups={"x": Shape(greedy=points), "y": Shape()}).components for points in (30.0, 0.0)
    )
    assert greedy_components == plain_components


def test_the_time_of_a_record_is_divided_among_its_episodes():
    """A record's time is shared by its episodes: 4 in training; 8 sampled and 4 greedy ones in an evaluation."""
    noise = estimate_noise(eval_episodes=8)
    assert noise.training_episode_s / noise.evaluation_episode_s == pytest.approx(12 / 4)


@pytest.mark.parametrize("changes", [{"outcome_over": "last-tenth"}, {"replicates": 2}, {"eval_episodes": 1}])
def test_experiments_with_too_few_episodes_have_no_noise_estimate(changes):
    assert estimate_noise(**changes) is None
    assert noise_of_pairs(fold(without_evaluations(Synthetic().events()))) is None


def test_a_run_with_fewer_episodes_than_planned_is_left_out():
    """A foreign journal may hold one: its outcome has another variance."""

    def drop_one_episode(record):
        return replace(record, episodes=record.episodes[record.run.name == "shaped/3" :])

    events = evaluations(Synthetic(replicates=6).events(), drop_one_episode)
    assert noise_of_pairs(fold(events)).components.runs == 5


def test_the_report_shows_the_same_noise_estimate_as_the_verdict():
    history = fold(Synthetic(replicates=10).events())
    report_content = content(history)
    noise = noise_of_pairs(history)
    text = " ".join(render_text(experiment_report(report_content), in_full=True).split())
    evaluation = json.loads(render_verdict(report_content))["evaluation"]
    assert next_text(noise).partition(":")[0] in text
    assert f"{100 * noise.components.share:.0f} % (80 % limits" in text
    assert evaluation["share"] == noise.components.share
    assert evaluation["next_eval_episodes"] == noise.next_eval_episodes
    assert evaluation["next_variance"] == pytest.approx(noise.variance_times(noise.next_eval_episodes))
    differences = np.array([pair.a - pair.b for pair in report_content.comparisons[0].pairs])
    assert evaluation["episode"] / evaluation["eval_episodes"] / evaluation["share"] == pytest.approx(
        differences.var(ddof=1)
    )
