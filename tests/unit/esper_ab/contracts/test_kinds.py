"""The kind of a task, and which kind reads a setting."""

import pytest

from esper_ab.contracts.kinds import GROWTH, GYMNASIUM, TRAINER, kind_of_task, readers_of


def test_the_kind_is_in_the_name() -> None:
    assert kind_of_task("digits") == GROWTH
    assert [kind_of_task(task) for task in ("gym:CartPole-v1", "/a/env.py:make", "a.b:make")] == [GYMNASIUM] * 3


@pytest.mark.parametrize(
    ("readers", "keys"),
    [
        ((), ("ppo.lr", "reward.mode", "policy.memory", "policy.hidden", "controller.name", "n_envs", "steps", "task")),
        (
            (GROWTH,),
            ("growth.host_lr", "reward.rent_weight", "policy.bias_wait", "slots", "screening", "arithmetic.kernel"),
        ),
        ((GYMNASIUM,), ("gym.rollout", "reward.params.weight")),
        ((GYMNASIUM, TRAINER), ("outcome", "outcome_better", "outcome_range")),
        ((TRAINER,), ("outcome_unit", "rehearsal", "trainer_folder")),
    ],
)
def test_who_reads_a_setting(readers: tuple[str, ...], keys: tuple[str, ...]) -> None:
    assert [readers_of(key) for key in keys] == [readers] * len(keys)
