"""The kind of a task."""

from esper_ab.contracts.settings import GROWTH, GYMNASIUM, kind_of_task


def test_the_kind_is_in_the_name() -> None:
    assert kind_of_task("digits") == GROWTH
    assert [kind_of_task(task) for task in ("gym:CartPole-v1", "/a/env.py:make", "a.b:make")] == [GYMNASIUM] * 3
