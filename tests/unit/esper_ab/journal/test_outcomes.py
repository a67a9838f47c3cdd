"""Numbers of runs by which groups are compared: exactly rounded means, and None where there is no number."""

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


def test_empty_evaluations_leave_everything_open():
    found = outcomes(fold(without_evaluations(planted_effect())))["shaped/0"]
    assert (found.outcome, found.greedy, {*found.measures.values()}, found.rewards) == (None, None, {None}, {})
    assert found.training_area is not None


def test_declared_outcomes_are_means_of_the_curve_or_of_its_end():
    curve = [mean_outcome(record) for record in records_of(RUN)]
    assert outcome_of(RUN, "curve-mean") == pytest.approx(math.fsum(curve) / 8)
    assert outcome_of(RUN, "last-tenth") == curve[-1]
    assert outcome_of(RUN, "evaluation") == mean_outcome(RUN.evaluation)


@pytest.mark.parametrize("outcome", ["curve-mean", "last-tenth"])
@pytest.mark.parametrize("category", ["dropped_pair", "cancelled"])
def test_a_run_that_was_given_up_has_no_outcome_although_its_curve_is_whole(outcome, category):
    whole = Synthetic(outcome_over=outcome).events()
    history = fold(with_last_run_given_up(whole, category))
    (lost,) = (run for run in history.runs.values() if run.lost)
    found = outcomes(history)
    assert found[lost.ref.name].outcome is None
    assert outcomes(fold(whole))[lost.ref.name].outcome is not None
    assert {name: one.outcome for name, one in found.items()} == {
        name: outcome_of(run, outcome) for name, run in history.runs.items()
    }


@given(st.lists(st.none() | FINITE, max_size=40))
def test_means_skip_what_is_not_there_and_are_rounded_once(values):
    known = [value for value in values if value is not None]
    exact = float(sum(map(Fraction, known), Fraction(0))) / len(known) if known else None
    assert mean(values) == exact
    assert mean_known([math.nan if value is None else value for value in values]) == exact


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_a_mean_of_something_that_is_not_finite_is_no_number(bad):
    assert mean([1.0, bad]) is None
    assert mean_known([1.0, math.nan, bad]) is None
    assert mean([1.0, math.nan]) is None


@given(st.lists(FINITE, max_size=64))
def test_ends_are_tenths_rounded_up(column):
    part = next(count for count in range(1, 8) if 10 * count >= len(column))
    assert rules.ends_of(column) == (mean(column[:part]), mean(column[len(column) - part :]))


def test_the_mean_over_an_episode_is_over_the_environments_that_have_the_value():
    envs = tuple(replace(env, outcome=one) for env, one in zip(RECORD.envs, (7.0, None, 2.0, None), strict=True))
    changed = replace(RECORD, envs=envs)
    assert mean_outcome(changed) == 4.5
    assert rules.episode_mean(changed, lambda env: float(env.steps)) == 25.0


@given(st.lists(st.none() | st.just(math.nan) | st.floats(0.0, 10.0), max_size=24))
def test_entropy_change_is_between_the_ends_of_the_updates(entropies):
    """Of each episode: None where the update had no entropy, NaN where the policy was not updated."""
    columns = Columns(tuple(RECORD.envs[0].measures))
    for episode, entropy in enumerate(entropies):
        update = None if entropy is not None and math.isnan(entropy) else replace(RECORD.ppo, entropy=entropy)
        columns.add(replace(RECORD, episode=episode, ppo=update))
    updates = [entropy for entropy in entropies if entropy is None or not math.isnan(entropy)]
    part = math.ceil(len(updates) / 10)
    first = mean(updates[:part])
    last = mean(updates[len(updates) - part :])
    wanted = last - first if len(updates) > 1 and first is not None and last is not None else None
    assert entropy_change(RunHistory(spec=RUN.spec, columns=columns)) == wanted


@pytest.mark.parametrize("declared", ["evaluation", "last-tenth", "curve-mean"])
def test_an_outcome_takes_an_evaluation_and_every_episode(declared):
    """The evaluation is what tells that the run has come to its end."""
    assert outcome_of(RunHistory(spec=RUN.spec, columns=RUN.columns), declared) is None
    spec = replace(RUN.spec, episodes=RUN.spec.episodes + 1)
    longer = RunHistory(spec=spec, columns=RUN.columns, evaluation=RUN.evaluation)
    assert outcome_of(longer, declared) == (mean_outcome(RUN.evaluation) if declared == "evaluation" else None)


def test_what_is_told_of_a_run_is_counted_by_hand():
    experiment = Synthetic(groups={"a": Shape(greedy=5.0), "b": Shape()}, replicates=1)
    events = experiment.events()
    place = next(n for n, event in enumerate(events) if isinstance(event, RunEvaluated))
    record = events[place].record
    played = list(record.episodes)
    failed = replace(played[0].result, failed=True, measures={**played[0].result.measures, "val_loss": None})
    played[0] = replace(played[0], result=failed, rewards={**played[0].rewards, "shaped": None})
    events[place] = RunEvaluated(record=replace(record, episodes=tuple(played)))
    told = outcomes(fold(events))[record.run.name]

    sampled = [one for one in played if one.actions == "sampled"]
    greedy = [one.result.outcome for one in played if one.actions == "greedy"]
    curve = [mean_outcome(one) for one in records_of(fold(events).runs[record.run.name])]
    assert told.training_area == pytest.approx(math.fsum(curve) / len(curve))
    assert (told.run, told.digest) == (record.run, record.digest)
    assert told.outcome == told.evaluated == mean(one.result.outcome for one in sampled)
    assert told.greedy == mean(greedy) != told.evaluated
    assert told.failed == 1 / len(sampled)
    assert list(told.rewards) == sorted(MODES)
    assert told.rewards["shaped"] == mean(one.rewards["shaped"] for one in sampled[1:])
    assert told.rewards["sparse"] == mean(one.rewards["sparse"] for one in sampled)
    assert told.measures["val_loss"] == mean(one.result.measures["val_loss"] for one in sampled[1:])
    assert told.measures["pruned"] == mean(one.result.measures["pruned"] for one in sampled)


def test_a_run_that_has_not_begun_has_no_number():
    told = outcomes(begin(planted_effect()[0]))
    assert list(told) == [run.ref.name for block in planted_effect()[0].plan.blocks for run in block.runs]
    nothing = ("outcome", "evaluated", "greedy", "failed", "entropy_change", "training_area", "digest")
    assert {getattr(one, name) for one in told.values() for name in nothing} == {None}
    assert all(one.rewards == {} and {*one.measures.values()} == {None} for one in told.values())
