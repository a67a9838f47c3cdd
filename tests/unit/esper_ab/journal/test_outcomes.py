"""Outcomes of runs: exactly rounded means, and None for missing numbers."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.journals.ready_journals import planted_effect, records_of, with_last_run_given_up, without_evaluations
from support.journals.synthetic import MODES, Shape, Synthetic

from esper_ab.journal import outcomes as rules
from esper_ab.journal.columns import Columns
from esper_ab.journal.events import RunEvaluated
from esper_ab.journal.fold import RunHistory, begin, fold
from esper_ab.journal.outcomes import entropy_change, mean, mean_known, mean_outcome, outcome_of, outcomes

FINITE = st.floats(-1e6, 1e6)
RUN = fold(planted_effect()).runs["shaped/0"]
RECORD = records_of(RUN)[0]


def test_a_run_without_an_evaluation_has_no_outcome():
    outcome = outcomes(fold(without_evaluations(planted_effect())))["shaped/0"]
    assert (outcome.outcome, outcome.greedy, {*outcome.measures.values()}, outcome.rewards) == (None, None, {None}, {})
    assert outcome.training_area is not None


def test_the_outcome_is_computed_as_declared():
    curve = [mean_outcome(record) for record in records_of(RUN)]
    assert outcome_of(RUN, "curve-mean") == pytest.approx(math.fsum(curve) / 8)
    assert outcome_of(RUN, "last-tenth") == curve[-1]
    assert outcome_of(RUN, "last-third") == pytest.approx(math.fsum(curve[-3:]) / 3)
    assert outcome_of(RUN, "evaluation") == mean_outcome(RUN.evaluation)


@pytest.mark.parametrize("outcome", ["curve-mean", "last-third", "last-tenth"])
@pytest.mark.parametrize("category", ["dropped_pair", "cancelled"])
def test_a_lost_run_has_no_outcome_despite_a_complete_curve(outcome, category):
    whole = Synthetic(outcome_over=outcome).events()
    history = fold(with_last_run_given_up(whole, category))
    (lost_run,) = (run for run in history.runs.values() if run.lost)
    by_run = outcomes(history)
    assert by_run[lost_run.ref.name].outcome is None
    assert outcomes(fold(whole))[lost_run.ref.name].outcome is not None
    assert {name: numbers.outcome for name, numbers in by_run.items()} == {
        name: outcome_of(run, outcome) for name, run in history.runs.items()
    }


@given(st.lists(st.none() | FINITE, max_size=40))
def test_means_skip_missing_values(values):
    present_values = [value for value in values if value is not None]
    exact_mean = (
        float(sum(map(Fraction, present_values), Fraction(0))) / len(present_values) if present_values else None
    )
    assert mean(values) == exact_mean
    assert mean_known([math.nan if value is None else value for value in values]) == exact_mean


@pytest.mark.parametrize("bad_value", [math.inf, -math.inf])
def test_the_mean_of_non_finite_values_is_none(bad_value):
    assert mean([1.0, bad_value]) is None
    assert mean_known([1.0, math.nan, bad_value]) is None
    assert mean([1.0, math.nan]) is None


@given(st.lists(FINITE, max_size=64))
def test_each_end_of_a_column_is_a_tenth_of_its_values(column):
    part = next(count for count in range(1, 8) if 10 * count >= len(column))
    assert rules.ends_of(column) == (mean(column[:part]), mean(column[len(column) - part :]))


def test_an_episode_mean_skips_environments_without_a_value():
    envs = tuple(
        replace(env, outcome=outcome) for env, outcome in zip(RECORD.envs, (7.0, None, 2.0, None), strict=True)
    )
    changed_record = replace(RECORD, envs=envs)
    assert mean_outcome(changed_record) == 4.5
    assert rules.episode_mean(changed_record, lambda env: float(env.steps)) == 25.0


@given(st.lists(st.none() | st.just(math.nan) | st.floats(0.0, 10.0), max_size=24))
def test_the_change_of_entropy_compares_the_last_and_first_tenth_of_updates(entropies):
    """An entropy is None if the update had none, and NaN if the policy was not updated."""
    columns = Columns(tuple(RECORD.envs[0].measures))
    for episode, entropy in enumerate(entropies):
        update = None if entropy is not None and math.isnan(entropy) else replace(RECORD.ppo, entropy=entropy)
        columns.add(replace(RECORD, episode=episode, ppo=update))
    updates = [entropy for entropy in entropies if entropy is None or not math.isnan(entropy)]
    part = math.ceil(len(updates) / 10)
    first_mean = mean(updates[:part])
    last_mean = mean(updates[len(updates) - part :])
    expected = last_mean - first_mean if len(updates) > 1 and first_mean is not None and last_mean is not None else None
    assert entropy_change(RunHistory(spec=RUN.spec, columns=columns)) == expected


@pytest.mark.parametrize("outcome_kind", ["evaluation", "last-tenth", "last-third", "curve-mean"])
def test_an_outcome_needs_an_evaluation_and_every_episode(outcome_kind):
    """The evaluation shows that the run is complete."""
    assert outcome_of(RunHistory(spec=RUN.spec, columns=RUN.columns), outcome_kind) is None
    spec = replace(RUN.spec, episodes=RUN.spec.episodes + 1)
    longer_run = RunHistory(spec=spec, columns=RUN.columns, evaluation=RUN.evaluation)
    assert outcome_of(longer_run, outcome_kind) == (
        mean_outcome(RUN.evaluation) if outcome_kind == "evaluation" else None
    )


def test_outcomes_equal_those_computed_by_hand():
    experiment = Synthetic(groups={"a": Shape(greedy=5.0), "b": Shape()}, replicates=1)
    events = experiment.events()
    place = next(n for n, event in enumerate(events) if isinstance(event, RunEvaluated))
    record = events[place].record
    episodes = list(record.episodes)
    failed_result = replace(episodes[0].result, failed=True, measures={**episodes[0].result.measures, "val_loss": None})
    episodes[0] = replace(episodes[0], result=failed_result, rewards={**episodes[0].rewards, "shaped": None})
    events[place] = RunEvaluated(record=replace(record, episodes=tuple(episodes)))
    numbers = outcomes(fold(events))[record.run.name]

    sampled_episodes = [episode for episode in episodes if episode.actions == "sampled"]
    greedy_outcomes = [episode.result.outcome for episode in episodes if episode.actions == "greedy"]
    curve = [mean_outcome(episode) for episode in records_of(fold(events).runs[record.run.name])]
    assert numbers.training_area == pytest.approx(math.fsum(curve) / len(curve))
    assert (numbers.run, numbers.digest) == (record.run, record.digest)
    assert numbers.outcome == numbers.evaluated == mean(episode.result.outcome for episode in sampled_episodes)
    assert numbers.greedy == mean(greedy_outcomes) != numbers.evaluated
    assert numbers.failed == 1 / len(sampled_episodes)
    assert list(numbers.rewards) == sorted(MODES)
    assert numbers.rewards["shaped"] == mean(episode.rewards["shaped"] for episode in sampled_episodes[1:])
    assert numbers.rewards["sparse"] == mean(episode.rewards["sparse"] for episode in sampled_episodes)
    assert numbers.measures["val_loss"] == mean(episode.result.measures["val_loss"] for episode in sampled_episodes[1:])
    assert numbers.measures["pruned"] == mean(episode.result.measures["pruned"] for episode in sampled_episodes)


def test_an_unstarted_run_has_no_outcomes():
    by_run = outcomes(begin(planted_effect()[0]))
    assert list(by_run) == [run.ref.name for block in planted_effect()[0].plan.blocks for run in block.runs]
    missing_names = ("outcome", "evaluated", "greedy", "failed", "entropy_change", "training_area", "digest")
    assert {getattr(numbers, name) for numbers in by_run.values() for name in missing_names} == {None}
    assert all(numbers.rewards == {} and {*numbers.measures.values()} == {None} for numbers in by_run.values())
