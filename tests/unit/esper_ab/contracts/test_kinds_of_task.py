"""The kinds of task, and what the name of a task says about its kind."""

from esper_ab.contracts.kinds_of_task import GROWTH, GYMNASIUM, kind_of_task


def test_the_kind_of_a_task_is_in_its_name() -> None:
    assert kind_of_task("digits") == GROWTH
    assert [kind_of_task(task) for task in ("gym:CartPole-v1", "/a/env.py:make", "a.b:make")] == [GYMNASIUM] * 3
