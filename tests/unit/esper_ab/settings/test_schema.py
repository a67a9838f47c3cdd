"""Which kinds of task read a setting; which of our keys other trainers call by another name."""

import pytest

from esper_ab.settings.schema import FIELDS


@pytest.mark.parametrize(
    ("kinds", "keys"),
    [
        (("growth", "gymnasium", "trainer"), ("seeds", "episodes", "alpha", "arithmetic.threads", "devices")),
        (("growth", "gymnasium"), ("ppo.lr", "reward.mode", "policy.memory", "arithmetic.kernel", "n_envs", "task")),
        (("growth",), ("growth.host_lr", "reward.rent_weight", "policy.bias_wait", "slots", "arithmetic.hosts")),
        (("gymnasium",), ("gym.rollout",)),
        (("gymnasium", "trainer"), ("outcome", "outcome_better", "outcome_range")),
        (("trainer",), ("outcome_unit", "rehearsal", "trainer_folder", "trainer")),
    ],
)
def test_which_kinds_of_task_read_a_setting(kinds, keys):
    assert [FIELDS[key].kinds for key in keys] == [kinds] * len(keys)
