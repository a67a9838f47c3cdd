"""The numbers of a live view, counted by hand from the records."""

import pytest
from msgspec.structs import replace
from support.journals.ready_journals import planted_effect, records_of, with_last_run_given_up
from support.journals.synthetic import TIMING, Shape, Synthetic

from esper_ab.journal.events import LookTaken, RunReady
from esper_ab.journal.fold import begin, fold
from esper_ab.journal.outcomes import mean_outcome
from esper_ab.journal.recent import DifferenceNow, differences_now, evaluation_work, group_now, worked_s


def test_a_group_stands_where_the_last_five_episodes_of_its_newest_run_do():
    events = planted_effect()
    history = fold(events)
    newest = records_of(history.runs["shaped/5"])[-5:]
    now = group_now(history, "shaped")
    assert (now.group, now.episodes, now.of_episodes) == ("shaped", 6 * 8, 6 * 8)
    assert now.outcome == pytest.approx(sum(map(mean_outcome, newest)) / 5)
    assert now.entropy == pytest.approx(sum(record.ppo.entropy for record in newest) / 5)
    assert now.seconds == TIMING.total_s
    rewards = [sum(env.reward_sum for env in record.envs) / len(record.envs) for record in newest]
    assert now.reward == pytest.approx(sum(rewards) / 5)


def test_before_the_first_episode_a_group_has_no_number():
    now = group_now(begin(planted_effect()[0]), "simplified")
    assert (now.episodes, now.of_episodes) == (0, 6 * 8)
    assert {now.outcome, now.reward, now.entropy, now.seconds} == {None}


def test_episodes_of_a_lost_run_count_neither_as_done_nor_as_planned():
    """Else a group that is done has more episodes than it has."""
    events = with_last_run_given_up(planted_effect())
    lost = next(run for run in fold(events).runs.values() if run.lost)
    now = group_now(fold(events), lost.ref.group_id)
    assert len(lost.columns) == 8
    assert (now.episodes, now.of_episodes) == (5 * 8, 5 * 8)


def test_a_difference_is_that_of_the_planned_direction_over_complete_pairs():
    experiment = Synthetic(
        groups={"a": Shape(accuracy=60.0), "b": Shape(accuracy=70.0)}, settings={"looks": (3, 6)}, replicates=6
    )
    history = fold([*experiment.events()[:-1], LookTaken(replicates=3, decided=(), leaving=())])
    outcomes = {name: mean_outcome(run.evaluation) for name, run in history.runs.items()}
    (found,) = differences_now(history)
    assert (found.a, found.b, found.pairs) == ("a", "b", 6)
    assert found.difference == pytest.approx(sum(outcomes[f"a/{n}"] - outcomes[f"b/{n}"] for n in range(6)) / 6)


def test_before_the_first_look_there_is_no_difference():
    experiment = Synthetic(replicates=20, settings={"looks": (12, 20)})
    assert differences_now(begin(experiment.events()[0])) == ()


def test_after_a_look_without_a_complete_pair_a_difference_has_no_number():
    experiment = Synthetic(replicates=20, settings={"looks": (12, 20)})
    history = fold([experiment.events()[0], LookTaken(replicates=12, decided=(), leaving=())])
    assert differences_now(history) == (DifferenceNow(a="shaped", b="simplified", pairs=0, difference=None),)


@pytest.mark.parametrize(("controller", "episodes"), [("ppo", 3.0), ("wait", 2.0)])
def test_an_evaluation_plays_whole_turns_and_once_more_with_greedy_actions_of_a_learner(controller, episodes):
    experiment = Synthetic(groups={"a": Shape(controller=controller), "b": Shape()}, n_envs=4, eval_episodes=8)
    spec = next(spec for spec in experiment.plan().blocks[0].runs if spec.ref.group_id == "a")
    assert evaluation_work(spec) == episodes


def test_the_lane_that_has_worked_longest_tells_how_long_the_work_takes():
    events = planted_effect()
    assert worked_s(begin(events[0])) == 0.0
    ready = next(place for place, event in enumerate(events) if isinstance(event, RunReady))
    before = worked_s(fold(events[:ready]))
    assert before == 0.0
    events[ready] = replace(events[ready], warm_up_s=1000.0)
    history = fold(events)
    lane = history.runs[events[ready].run.name].ref.device
    runs = [run for run in history.runs.values() if run.ref.device == lane]
    longest = sum(run.warm_up_s + 8 * TIMING.total_s + run.evaluation.timing.total_s for run in runs)
    assert worked_s(history) == pytest.approx(longest)
