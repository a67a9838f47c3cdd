"""What an experiment says of its evaluation noise: against the numbers that its journal was drawn from."""

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


def found(**changes):
    return noise_of_pairs(fold(Synthetic(**changes).events()))


def test_components_are_those_of_the_outcomes():
    """Runs differ by 1.5 points, their episodes by 2, without pairing: differences by 4.5 and 8 in squares."""
    history = fold(Synthetic(replicates=200, eval_episodes=8, episodes=1, n_envs=2).events())
    pairs = noise_of_pairs(history).components
    runs = noise_of_runs(history).components
    assert pairs.episode == pytest.approx(2 * 4.0, rel=0.1)
    assert pairs.policy == pytest.approx(2 * 2.25, rel=0.35)
    assert (runs.runs, runs.eval_episodes) == (400, 8)
    assert runs.episode == pytest.approx(4.0, rel=0.1)
    assert runs.policy == pytest.approx(2.25, rel=0.5)


def test_greedy_hosts_do_not_count():
    greedy, plain = (found(groups={"x": Shape(greedy=points), "y": Shape()}).components for points in (30.0, 0.0))
    assert greedy == plain


def test_costs_are_per_host():
    """A record's time is shared by its episodes: 4 of a training episode, 8 and 4 greedy ones of an evaluation."""
    one = found(eval_episodes=8)
    assert one.training_episode_s / one.evaluation_episode_s == pytest.approx(12 / 4)


@pytest.mark.parametrize("changes", [{"outcome_over": "last-tenth"}, {"replicates": 2}, {"eval_episodes": 1}])
def test_nothing_is_told_where_nothing_is_known(changes):
    assert found(**changes) is None
    assert noise_of_pairs(fold(without_evaluations(Synthetic().events()))) is None


def test_a_run_with_other_hosts_than_planned_is_left_out():
    """A foreign journal may hold one: its outcome has another variance."""

    def fewer(record):
        return replace(record, episodes=record.episodes[record.run.name == "shaped/3" :])

    events = evaluations(Synthetic(replicates=6).events(), fewer)
    assert noise_of_pairs(fold(events)).components.runs == 5


def test_report_and_verdict_show_the_same_estimate():
    history = fold(Synthetic(replicates=10).events())
    shown = content(history)
    noise = noise_of_pairs(history)
    text = " ".join(render_text(experiment_report(shown), whole=True).split())
    told = json.loads(render_verdict(shown))["evaluation"]
    assert next_text(noise).partition(":")[0] in text
    assert f"{100 * noise.components.share:.0f} % (80 % limits" in text
    assert told["share"] == noise.components.share
    assert told["next_eval_episodes"] == noise.next_eval_episodes
    assert told["next_variance"] == pytest.approx(noise.variance_times(noise.next_eval_episodes))
    differences = np.array([pair.a - pair.b for pair in shown.comparisons[0].pairs])
    assert told["episode"] / told["eval_episodes"] / told["share"] == pytest.approx(differences.var(ddof=1))
