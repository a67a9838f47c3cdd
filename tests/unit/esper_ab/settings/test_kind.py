"""Settings that each kind of task reads."""

import pytest

from esper_ab.contracts import kinds_of_task
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.settings.kind import SettingsKind
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
def test_each_setting_is_read_by_its_kinds_of_task(kinds, keys):
    for key in keys:
        reading_kinds = [name for name in kinds_of_task.kinds() if of_kind(name, SettingsKind).reads(FIELDS[key])]
        assert reading_kinds == list(kinds), key
