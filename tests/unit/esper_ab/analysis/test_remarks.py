"""Remarks on curves and evaluations are made where a reader would ask, and nowhere else."""

from __future__ import annotations

import msgspec
from support.journals import Shape, Synthetic

from esper_ab.analysis.learning import learning
from esper_ab.analysis.remarks import remarks
from esper_ab.contracts.settings import PPOSettings
from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import mean, outcomes


def said(events):
    history = fold(events)
    found = outcomes(history)
    return remarks(history, found, learning(history, found))


def falling(events):
    """The same journal with outcomes that fall by ten points per episode."""
    for event in events:
        if isinstance(event, EpisodeRecorded):
            record = event.record
            envs = tuple(msgspec.structs.replace(env, outcome=90.0 - 10.0 * record.episode) for env in record.envs)
            event = msgspec.structs.replace(event, record=msgspec.structs.replace(record, envs=envs))
        yield event


def test_curves_that_rise_need_no_remark():
    assert said(Synthetic().events()) == ()


def test_curves_that_fall_are_spoken_of():
    first, second = said(list(falling(Synthetic(episodes=4).events())))
    assert first.startswith("Training did not improve the held-out accuracy of shaped: from 90.00 % ")
    assert "of simplified" in second


def test_greedy_far_above_sampled_is_spoken_of():
    (one,) = said(Synthetic(groups={"a": Shape(greedy=20.0), "b": Shape()}).events())
    assert one.startswith("Of a: its greedy actions reach ")


def test_a_fixed_plan_above_every_learner_is_spoken_of():
    groups = {"a": Shape(accuracy=60.0), "plan": Shape(accuracy=90.0, controller="schedule"),
              "wait": Shape(accuracy=30.0, controller="wait")}  # fmt: skip
    (one,) = said(Synthetic(groups=groups).events())
    assert one.startswith("plan, which does not learn, comes to ")
    assert "the best group that learns, a, to " in one


def test_a_policy_with_a_learning_rate_of_0_is_spoken_of_as_one_that_does_not_learn():
    """More updates would not help it, its curve is no training, and it is not the best of those that learn."""
    fixed = Shape(accuracy=80.0, greedy=-30.0, ppo=PPOSettings(lr=0.0))
    events = Synthetic(groups={"a": Shape(accuracy=60.0), "untrained": fixed}, episodes=4).events()
    (one,) = said(events)
    assert one.startswith("untrained, which does not learn, comes to ")
    assert "the best group that learns, a, to " in one
    assert [line for line in said(list(falling(events))) if "did not improve" in line and "untrained" in line] == []


def test_a_fixed_plan_is_spoken_of_from_the_margin_on():
    groups = {"a": Shape(accuracy=60.0), "plan": Shape(accuracy=61.0, controller="schedule")}
    events = Synthetic(groups=groups).events()
    found = outcomes(fold(events))
    means = [mean(one.outcome for one in found.values() if one.run.group_id == group) for group in groups]
    ahead = means[1] - means[0]
    assert ahead > 0.0
    for margin, told in ((1.01 * ahead, 0), (ahead, 1), (0.5 * ahead, 1)):
        assert len(said(Synthetic(groups=groups, settings={"margin": margin}).events())) == told
