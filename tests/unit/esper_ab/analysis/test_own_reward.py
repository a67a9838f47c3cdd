"""Own rewards beside outcomes: who is told to have been misled, and what the report of Gymnasium's kind says of it."""

from __future__ import annotations

import msgspec
import pytest
from support.journals import Shape, Synthetic

from esper_ab.analysis.own_reward import misled, own_rewards
from esper_ab.contracts.kinds import GYMNASIUM
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.fold import fold
from esper_ab.report.content import Content, content
from esper_ab.report.figures import catalogue
from esper_ab.report.sections import sections

RETURN = TaskMeasures(outcome=Measure(name="env_return", label="return", better="higher"), measures=())


def reported(slopes: dict[str, float], better: str = "higher") -> Content:
    """Groups whose own reward changes by a slope per episode; the outcome of `high` is far above that of `low`."""
    outcome = msgspec.structs.replace(RETURN.outcome, better=better)
    made = Synthetic(
        kind=GYMNASIUM, measures=TaskMeasures(outcome=outcome, measures=()), replicates=6,
        groups={"high": Shape(accuracy=90.0), "low": Shape(accuracy=40.0, mode="simplified")},
    )  # fmt: skip
    events = []
    for event in made.events():
        if isinstance(event, EpisodeRecorded):
            record = event.record
            reward = slopes[record.run.group_id] * record.episode
            envs = tuple(msgspec.structs.replace(env, reward_sum=reward) for env in record.envs)
            event = msgspec.structs.replace(event, record=msgspec.structs.replace(record, envs=envs))
        events.append(event)
    return content(fold(events))


@pytest.mark.parametrize(("slopes", "better", "expected"), [
    ({"high": 1.0, "low": 5.0}, "higher", [("low", "high")]),
    ({"high": 1.0, "low": 0.0}, "higher", []),  # its reward has not risen: it has failed, and misled nobody
    ({"high": 1.0, "low": -5.0}, "higher", []),
    ({"high": 1.0, "low": 5.0}, "lower", [("high", "low")]),  # the direction of the outcome decides who is worse
])  # fmt: skip
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
    (table,) = [table for table in sections(found)[0].tables if table.title.startswith("Own reward")]
    assert "low's own reward rose in 6 of 6 runs, and by the outcome it is worse than high." in table.note
    assert [row[0] for row in table.rows] == ["high", "low"]
    assert "own-reward" in catalogue.names(found)
    assert len(catalogue.figure("own-reward", found).axes) == 2
