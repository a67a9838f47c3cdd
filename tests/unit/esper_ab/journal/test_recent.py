"""The numbers of the live view equal numbers computed from the records."""

import pytest
from msgspec.structs import replace
from support.journals.ready_journals import planted_effect, records_of, with_last_run_given_up
from support.journals.synthetic import TIMING, Shape, Synthetic

from esper_ab.journal.events import LookTaken, RunReady
from esper_ab.journal.fold import begin, fold
from esper_ab.journal.outcomes import mean_outcome
from esper_ab.journal.recent import DifferenceNow, differences_now, evaluation_work, group_now, worked_s


def test_the_live_numbers_of_a_group_average_five_recent_episodes():
    events = planted_effect()
    history = fold(events)
    newest_records = records_of(history.runs["shaped/5"])[-5:]
    group = group_now(history, "shaped")
    assert (group.group, group.episodes, group.of_episodes) == ("shaped", 6 * 8, 6 * 8)
    assert group.outcome == pytest.approx(sum(map(mean_outcome, newest_records)) / 5)
    assert group.entropy == pytest.approx(sum(record.ppo.entropy for record in newest_records) / 5)
    assert group.seconds == TIMING.total_s
    rewards = [sum(env.reward_sum for env in record.envs) / len(record.envs) for record in newest_records]
    assert group.reward == pytest.approx(sum(rewards) / 5)


def test_a_group_without_an_episode_has_no_live_numbers():
    group = group_now(begin(planted_effect()[0]), "simplified")
    assert (group.episodes, group.of_episodes) == (0, 6 * 8)
    assert {group.outcome, group.reward, group.entropy, group.seconds} == {None}


def test_progress_does_not_include_episodes_of_lost_runs():
    """Otherwise a complete group would show fewer episodes done than planned."""
    events = with_last_run_given_up(planted_effect())
    lost_run = next(run for run in fold(events).runs.values() if run.lost)
    group = group_now(fold(events), lost_run.ref.group_id)
    assert len(lost_run.columns) == 8
    assert (group.episodes, group.of_episodes) == (5 * 8, 5 * 8)


def test_the_live_difference_is_the_mean_difference_of_complete_pairs():
    experiment = Synthetic(
        groups={"a": Shape(accuracy=60.0), "b": Shape(accuracy=70.0)}, settings={"looks": (3, 6)}, replicates=6
    )
    history = fold([*experiment.events()[:-1], LookTaken(replicates=3, decided=(), leaving=())])
    outcomes = {name: mean_outcome(run.evaluation) for name, run in history.runs.items()}
    (comparison,) = differences_now(history)
    assert (comparison.a, comparison.b, comparison.pairs) == ("a", "b", 6)
    assert comparison.difference == pytest.approx(sum(outcomes[f"a/{n}"] - outcomes[f"b/{n}"] for n in range(6)) / 6)


def test_live_differences_are_hidden_before_the_first_look():
    experiment = Synthetic(replicates=20, settings={"looks": (12, 20)})
    assert differences_now(begin(experiment.events()[0])) == ()


def test_there_is_no_live_difference_without_a_complete_pair():
    experiment = Synthetic(replicates=20, settings={"looks": (12, 20)})
    history = fold([experiment.events()[0], LookTaken(replicates=12, decided=(), leaving=())])
    assert differences_now(history) == (DifferenceNow(a="shaped", b="simplified", pairs=0, difference=None),)


@pytest.mark.parametrize(("controller", "episodes"), [("ppo", 3.0), ("wait", 2.0)])
def test_the_evaluation_of_a_learner_has_an_additional_greedy_round(controller, episodes):
    experiment = Synthetic(groups={"a": Shape(controller=controller), "b": Shape()}, n_envs=4, eval_episodes=8)
    spec = next(spec for spec in experiment.plan().blocks[0].runs if spec.ref.group_id == "a")
    assert evaluation_work(spec) == episodes


def test_the_working_time_is_that_of_the_busiest_lane():
    events = planted_effect()
    assert worked_s(begin(events[0])) == 0.0
    ready_index = next(place for place, event in enumerate(events) if isinstance(event, RunReady))
    assert worked_s(fold(events[:ready_index])) == 0.0
    events[ready_index] = replace(events[ready_index], warm_up_s=1000.0)
    history = fold(events)
    lane = history.runs[events[ready_index].run.name].ref.device
    runs = [run for run in history.runs.values() if run.ref.device == lane]
    longest_time = sum(run.warm_up_s + 8 * TIMING.total_s + run.evaluation.timing.total_s for run in runs)
    assert worked_s(history) == pytest.approx(longest_time)
