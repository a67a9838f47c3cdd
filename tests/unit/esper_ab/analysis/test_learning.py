"""Sentences about a group's learning, from synthetic journals with one limiting factor each."""

from collections.abc import Callable

import msgspec
import pytest
from support.journals.audited_journals import episodes
from support.journals.ready_journals import one_replicate
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.learning import Learning, greedy_gap, learning, unsettled
from esper_ab.analysis.own_reward import misled, own_rewards
from esper_ab.analysis.remarks import remarks
from esper_ab.contracts.kinds_of_task import GYMNASIUM
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.records import EpisodeRecord, HeadUse
from esper_ab.contracts.settings import PPOSettings
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import mean, outcomes
from esper_ab.report.content import Content, content
from esper_ab.report.figures import catalogue
from esper_ab.report.kind import tables_of

Change = Callable[[EpisodeRecord], EpisodeRecord]


def describe_learning(
    change: Change = lambda record: record, greedy_gain: float = 0.0, **ppo: float
) -> tuple[Learning, ...]:
    """Return the learning of a learner and of `wait`, with changed episodes and `greedy_gain` points for greed."""
    good_shape = Shape(accuracy=75.0, greedy=greedy_gain, ppo=PPOSettings(**ppo))
    groups = {"good": good_shape, "wait": Shape(accuracy=33.0, controller="wait")}
    history = fold(episodes(Synthetic(groups=groups, replicates=2, episodes=20).events(), change, group=""))
    return learning(history, outcomes(history))


def change_envs(record: EpisodeRecord, **fields: object) -> EpisodeRecord:
    envs = tuple(msgspec.structs.replace(env, **fields) for env in record.envs)
    return msgspec.structs.replace(record, envs=envs)


def change_updates(**fields: object) -> Change:
    """Return a change of updates to these fields; `op` is the entropy of the op head."""
    op = HeadUse(entropy=fields.pop("op"), learnable=1.0)

    def change(record: EpisodeRecord) -> EpisodeRecord:
        if record.ppo is None:
            return record
        ppo = msgspec.structs.replace(record.ppo, heads={**record.ppo.heads, "op": op}, **fields)
        return msgspec.structs.replace(record, ppo=ppo)

    return change


def test_only_learning_groups_are_described_with_their_budget():
    (learner,) = describe_learning()
    assert (learner.group, learner.updates, learner.episodes) == ("good", 20.0, 80.0)
    assert learner.trust_region == pytest.approx(0.012 / 0.05)


ONE_STEP = {"epochs": 1, "minibatches": 1}


@pytest.mark.parametrize(
    ("change", "greedy_gain", "ppo", "words"),
    [
        (change_updates(op=0.95), 0.0, {}, "nearly uniform"),
        (change_updates(op=0.95), 12.0, {}, "nearly uniform"),
        (change_updates(op=0.95), 12.0, {"lr": 0.0}, "the learning rate is 0, so the policy is the untrained one."),
        (change_updates(op=0.5), 12.0, {}, "has not converged"),
        (change_updates(op=0.5), -30.0, {}, "most probable action alone"),
        (change_updates(op=0.5, approx_kl=0.002), 0.0, {}, "uses 4 % of the trust region"),
        (change_updates(op=0.5, stopped_by_kl=True), 0.0, {}, "100 % of the updates stop"),
        (change_updates(op=0.5, stopped_by_kl=True, approx_kl=0.002), 0.0, {}, "100 % of the updates stop"),
        (change_updates(op=0.5), 0.0, {}, "no known limit applies"),
        # KL is measured before every step, so before the only one it is 0, however large that step is.
        (change_updates(op=0.5, approx_kl=0.0), 0.0, ONE_STEP, "no known limit applies"),
        (change_updates(op=0.5, approx_kl=0.0), 0.0, ONE_STEP | {"epochs": 2}, "uses 0 % of the trust region"),
        (change_updates(op=0.5, approx_kl=0.0), 0.0, ONE_STEP | {"minibatches": 2}, "uses 0 % of the trust region"),
    ],
)
def test_the_sentence_about_a_group_names_the_limit_of_its_learning(change, greedy_gain, ppo, words):
    (learner,) = describe_learning(change, greedy_gain, **ppo)
    assert words in learner.limit
    assert learner.limit.startswith("good: ")
    assert (f"{learner.greedy:.2f} %" in learner.limit) == (greedy_gain != 0.0 and learner.learns)
    assert (learner.trust_region is None) == (ppo == ONE_STEP)


@pytest.mark.parametrize(("lr", "groups"), [(0.0, []), (3e-4, ["good"])])
def test_a_policy_with_a_learning_rate_of_0_is_not_called_unsettled(lr, groups):
    assert unsettled(fold(one_replicate()).design, describe_learning(change_updates(op=0.95), 12.0, lr=lr)) == groups


def test_first_and_last_measures_are_taken_at_the_ends_of_training():
    def change_counts(record: EpisodeRecord) -> EpisodeRecord:
        counts = {"pruned": 4.0 if record.episode == 0 else 1.0, "fossilized": 2.0 if record.episode >= 18 else 0.0}
        return change_envs(record, measures=record.envs[0].measures | counts)

    (learner,) = describe_learning(change_counts)
    assert (learner.first["pruned"], learner.last["pruned"]) == (4.0, 1.0)
    assert (learner.first["fossilized"], learner.last["fossilized"]) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("sampled_outcome", "greedy_outcome"), [(None, 50.0), (50.0, None), (50.0, 54.9), (50.0, 45.1)]
)
def test_a_small_gap_between_greedy_and_sampled_scores_is_not_mentioned(sampled_outcome, greedy_outcome):
    assert greedy_gap(fold(one_replicate()).design, sampled_outcome, greedy_outcome) == ""


# Own rewards beside outcomes: groups that their reward misled, and the report on a Gymnasium experiment.


def make_content(slopes: dict[str, float], better_direction: str = "higher") -> Content:
    """Report on groups whose own reward changes by a slope per episode; `high` has a far higher outcome than `low`."""
    outcome = Measure(name="env_return", label="return", better=better_direction)
    synthetic_experiment = Synthetic(
        kind=GYMNASIUM,
        measures=TaskMeasures(outcome=outcome, measures=()),
        replicates=6,
        groups={"high": Shape(accuracy=90.0), "low": Shape(accuracy=40.0, mode="simplified")},
    )

    def set_reward(record: EpisodeRecord) -> EpisodeRecord:
        return change_envs(record, reward_sum=slopes[record.run.group_id] * record.episode)

    return content(fold(episodes(synthetic_experiment.events(), set_reward, group="")))


@pytest.mark.parametrize(
    ("slopes", "better_direction", "expected"),
    [
        ({"high": 1.0, "low": 5.0}, "higher", [("low", "high")]),
        ({"high": 1.0, "low": 0.0}, "higher", []),  # its reward has not risen, so it has not misled it
        ({"high": 1.0, "low": -5.0}, "higher", []),
        ({"high": 1.0, "low": 5.0}, "lower", [("high", "low")]),  # the direction of the outcome decides who is worse
    ],
)
def test_a_worse_group_with_a_rising_reward_counts_as_misled(
    slopes: dict[str, float], better_direction: str, expected: list
) -> None:
    report_content = make_content(slopes, better_direction)
    rewards = own_rewards(report_content.history)
    assert [
        (reward_rise.group, other_group) for reward_rise, other_group in misled(rewards, report_content.comparisons)
    ] == expected
    for reward_rise in rewards:
        assert reward_rise.runs == 6
        assert reward_rise.rose == (6 if slopes[reward_rise.group] > 0.0 else 0)
        first_reward, last_reward = reward_rise.reward
        assert (last_reward - first_reward > 0.0) == (slopes[reward_rise.group] > 0.0)


def test_the_report_names_misled_groups() -> None:
    report_content = make_content({"high": 1.0, "low": 5.0})
    assert (
        "low's own reward rose in 6 of 6 runs, and by the outcome it is worse than high."
        in report_content.analysis.remarks
    )
    (table,) = tables_of(report_content).training(report_content)
    assert [row[0] for row in table.rows] == ["high", "low"]
    assert "own-reward" in catalogue.names(report_content)
    assert len(catalogue.figure("own-reward", report_content).axes) == 2


# Remarks on curves and evaluations are made where a reader would ask, and nowhere else.


def make_remarks(events):
    history = fold(events)
    run_outcomes = outcomes(history)
    return remarks(history, run_outcomes, learning(history, run_outcomes), ())


def lower_outcome(record: EpisodeRecord) -> EpisodeRecord:
    """Return the record with an outcome that falls by ten points per episode."""
    return change_envs(record, outcome=90.0 - 10.0 * record.episode)


FIXED = Shape(accuracy=80.0, greedy=-30.0, ppo=PPOSettings(lr=0.0))


@pytest.mark.parametrize(
    ("groups", "starts", "ends"),
    [
        ({"a": Shape(greedy=20.0), "b": Shape()}, "a: it scores ", ""),
        (
            {
                "a": Shape(accuracy=60.0),
                "plan": Shape(accuracy=90.0, controller="schedule"),
                "wait": Shape(accuracy=30.0, controller="wait"),
            },
            "plan, which does not learn, reaches ",
            "; a, the best group that learns, ",
        ),
        # With a learning rate of 0, `untrained` does not count as a group that learns.
        (
            {"a": Shape(accuracy=60.0), "untrained": FIXED},
            "untrained, which does not learn, reaches ",
            "; a, the best group that learns, ",
        ),
    ],
)
def test_surprising_evaluations_get_a_remark(groups, starts, ends):
    (remark,) = make_remarks(Synthetic(groups=groups).events())
    assert remark.startswith(starts)
    assert ends in remark


def test_only_falling_curves_of_training_groups_get_a_remark():
    groups = {"a": Shape(accuracy=60.0), "b": Shape(accuracy=60.0), "untrained": FIXED}
    events = Synthetic(groups=groups, episodes=4).events()
    remarks_on_falls = [
        line for line in make_remarks(episodes(events, lower_outcome, group="")) if "did not improve" in line
    ]
    assert [line.partition(" of ")[2][:2] for line in remarks_on_falls] == ["a:", "b:"]
    assert remarks_on_falls[0].startswith("Training did not improve the held-out accuracy of a: from 90.00 % ")
    assert make_remarks(Synthetic().events()) == ()


def test_a_fixed_schedule_ahead_by_the_margin_gets_a_remark():
    groups = {"a": Shape(accuracy=60.0), "plan": Shape(accuracy=61.0, controller="schedule")}
    events = Synthetic(groups=groups).events()
    run_outcomes = outcomes(fold(events))
    means = [
        mean(run_outcome.outcome for run_outcome in run_outcomes.values() if run_outcome.run.group_id == group)
        for group in groups
    ]
    lead = means[1] - means[0]
    assert lead > 0.0
    for margin, count in ((1.01 * lead, 0), (lead, 1), (0.5 * lead, 1)):
        assert len(make_remarks(Synthetic(groups=groups, settings={"margin": margin}).events())) == count
