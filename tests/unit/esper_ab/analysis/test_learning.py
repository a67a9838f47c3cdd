"""What is said of a group's learning, from synthetic journals that are each limited by one thing."""

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


def learnt(change: Change = lambda record: record, greedy: float = 0.0, **ppo: float) -> tuple[Learning, ...]:
    """The learning of a learner and of `wait`, with changed episodes; greedy actions gain `greedy` points."""
    good = Shape(accuracy=75.0, greedy=greedy, ppo=PPOSettings(**ppo))
    groups = {"good": good, "wait": Shape(accuracy=33.0, controller="wait")}
    history = fold(episodes(Synthetic(groups=groups, replicates=2, episodes=20).events(), change, group=""))
    return learning(history, outcomes(history))


def every_env(record: EpisodeRecord, **fields: object) -> EpisodeRecord:
    envs = tuple(msgspec.structs.replace(env, **fields) for env in record.envs)
    return msgspec.structs.replace(record, envs=envs)


def changed_ppo(**fields: object) -> Change:
    """Updates with these fields; `op` is the entropy of the op head."""
    op = HeadUse(entropy=fields.pop("op"), learnable=1.0)

    def change(record: EpisodeRecord) -> EpisodeRecord:
        if record.ppo is None:
            return record
        ppo = msgspec.structs.replace(record.ppo, heads={**record.ppo.heads, "op": op}, **fields)
        return msgspec.structs.replace(record, ppo=ppo)

    return change


def test_only_groups_that_learn_are_described_with_their_budget():
    (found,) = learnt()
    assert (found.group, found.updates, found.episodes) == ("good", 20.0, 80.0)
    assert found.trust_region == pytest.approx(0.012 / 0.05)


ONE_STEP = {"epochs": 1, "minibatches": 1}


@pytest.mark.parametrize(
    ("change", "greedy", "ppo", "words"),
    [
        (changed_ppo(op=0.95), 0.0, {}, "nearly uniform"),
        (changed_ppo(op=0.95), 12.0, {}, "nearly uniform"),
        (changed_ppo(op=0.95), 12.0, {"lr": 0.0}, "the learning rate is 0, so the policy is the untrained one."),
        (changed_ppo(op=0.5), 12.0, {}, "has not converged"),
        (changed_ppo(op=0.5), -30.0, {}, "most probable action alone"),
        (changed_ppo(op=0.5, approx_kl=0.002), 0.0, {}, "uses 4 % of the trust region"),
        (changed_ppo(op=0.5, stopped_by_kl=True), 0.0, {}, "100 % of the updates stop"),
        (changed_ppo(op=0.5, stopped_by_kl=True, approx_kl=0.002), 0.0, {}, "100 % of the updates stop"),
        (changed_ppo(op=0.5), 0.0, {}, "no known limit applies"),
        # KL is measured before every step, so before the only one it is 0, however large that step is.
        (changed_ppo(op=0.5, approx_kl=0.0), 0.0, ONE_STEP, "no known limit applies"),
        (changed_ppo(op=0.5, approx_kl=0.0), 0.0, ONE_STEP | {"epochs": 2}, "uses 0 % of the trust region"),
        (changed_ppo(op=0.5, approx_kl=0.0), 0.0, ONE_STEP | {"minibatches": 2}, "uses 0 % of the trust region"),
    ],
)
def test_the_sentence_names_what_limits_the_runs(change, greedy, ppo, words):
    (found,) = learnt(change, greedy, **ppo)
    assert words in found.limit
    assert found.limit.startswith("good: ")
    assert (f"{found.greedy:.2f} %" in found.limit) == (greedy != 0.0 and found.learns)
    assert (found.trust_region is None) == (ppo == ONE_STEP)


@pytest.mark.parametrize(("lr", "groups"), [(0.0, []), (3e-4, ["good"])])
def test_a_policy_that_is_not_to_learn_is_not_unsettled(lr, groups):
    assert unsettled(fold(one_replicate()).design, learnt(changed_ppo(op=0.95), 12.0, lr=lr)) == groups


def test_first_and_last_measures_are_those_of_the_ends_of_training():
    def fewer_prunes(record: EpisodeRecord) -> EpisodeRecord:
        counts = {"pruned": 4.0 if record.episode == 0 else 1.0, "fossilized": 2.0 if record.episode >= 18 else 0.0}
        return every_env(record, measures=record.envs[0].measures | counts)

    (found,) = learnt(fewer_prunes)
    assert (found.first["pruned"], found.last["pruned"]) == (4.0, 1.0)
    assert (found.first["fossilized"], found.last["fossilized"]) == (0.0, 2.0)


@pytest.mark.parametrize(("sampled", "greedy"), [(None, 50.0), (50.0, None), (50.0, 54.9), (50.0, 45.1)])
def test_a_small_or_unknown_gap_is_not_commented_on(sampled, greedy):
    assert greedy_gap(fold(one_replicate()).design, sampled, greedy) == ""


# Own rewards beside outcomes: who is told to have been misled, and what the report of Gymnasium's kind says of it.


def reported(slopes: dict[str, float], better: str = "higher") -> Content:
    """Groups whose own reward changes by a slope per episode; the outcome of `high` is far above that of `low`."""
    outcome = Measure(name="env_return", label="return", better=better)
    made = Synthetic(
        kind=GYMNASIUM,
        measures=TaskMeasures(outcome=outcome, measures=()),
        replicates=6,
        groups={"high": Shape(accuracy=90.0), "low": Shape(accuracy=40.0, mode="simplified")},
    )

    def rewarded(record: EpisodeRecord) -> EpisodeRecord:
        return every_env(record, reward_sum=slopes[record.run.group_id] * record.episode)

    return content(fold(episodes(made.events(), rewarded, group="")))


@pytest.mark.parametrize(
    ("slopes", "better", "expected"),
    [
        ({"high": 1.0, "low": 5.0}, "higher", [("low", "high")]),
        ({"high": 1.0, "low": 0.0}, "higher", []),  # its reward has not risen: it has failed, and misled nobody
        ({"high": 1.0, "low": -5.0}, "higher", []),
        ({"high": 1.0, "low": 5.0}, "lower", [("high", "low")]),  # the direction of the outcome decides who is worse
    ],
)
def test_who_is_worse_although_its_own_reward_rose(slopes: dict[str, float], better: str, expected: list) -> None:
    found = reported(slopes, better)
    rewards = own_rewards(found.history)
    assert [(one.group, other) for one, other in misled(rewards, found.comparisons)] == expected
    for one in rewards:
        assert one.runs == 6
        assert one.rose == (6 if slopes[one.group] > 0.0 else 0)
        first, last = one.reward
        assert (last - first > 0.0) == (slopes[one.group] > 0.0)


def test_the_report_says_so_and_draws_each_reward_on_its_own_scale() -> None:
    found = reported({"high": 1.0, "low": 5.0})
    assert "low's own reward rose in 6 of 6 runs, and by the outcome it is worse than high." in found.analysis.remarks
    (table,) = tables_of(found).training(found)
    assert [row[0] for row in table.rows] == ["high", "low"]
    assert "own-reward" in catalogue.names(found)
    assert len(catalogue.figure("own-reward", found).axes) == 2


# Remarks on curves and evaluations are made where a reader would ask, and nowhere else.


def said(events):
    history = fold(events)
    found = outcomes(history)
    return remarks(history, found, learning(history, found), ())


def falling(record: EpisodeRecord) -> EpisodeRecord:
    """Outcomes fall by ten points per episode."""
    return every_env(record, outcome=90.0 - 10.0 * record.episode)


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
        # More updates would not help a learning rate of 0, and it is not the best of those that learn.
        (
            {"a": Shape(accuracy=60.0), "untrained": FIXED},
            "untrained, which does not learn, reaches ",
            "; a, the best group that learns, ",
        ),
    ],
)
def test_a_remark_is_made_where_a_reader_would_ask(groups, starts, ends):
    (one,) = said(Synthetic(groups=groups).events())
    assert one.startswith(starts)
    assert ends in one


def test_curves_that_fall_are_spoken_of_where_they_are_training_and_those_that_rise_are_not():
    groups = {"a": Shape(accuracy=60.0), "b": Shape(accuracy=60.0), "untrained": FIXED}
    events = Synthetic(groups=groups, episodes=4).events()
    fell = [line for line in said(episodes(events, falling, group="")) if "did not improve" in line]
    assert [line.partition(" of ")[2][:2] for line in fell] == ["a:", "b:"]
    assert fell[0].startswith("Training did not improve the held-out accuracy of a: from 90.00 % ")
    assert said(Synthetic().events()) == ()


def test_a_fixed_plan_is_spoken_of_from_the_margin_on():
    groups = {"a": Shape(accuracy=60.0), "plan": Shape(accuracy=61.0, controller="schedule")}
    events = Synthetic(groups=groups).events()
    found = outcomes(fold(events))
    means = [mean(one.outcome for one in found.values() if one.run.group_id == group) for group in groups]
    ahead = means[1] - means[0]
    assert ahead > 0.0
    for margin, told in ((1.01 * ahead, 0), (ahead, 1), (0.5 * ahead, 1)):
        assert len(said(Synthetic(groups=groups, settings={"margin": margin}).events())) == told
