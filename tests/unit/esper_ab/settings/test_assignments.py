"""Constants of the command line and of files; which kinds of task read a setting."""

from pathlib import Path

import pytest

from esper_ab.settings.assignments import FIELDS, Assignment, convert_value


def constant(value, *, is_text):
    return convert_value(Assignment("reward.params.w", value, "there", Path("/"), is_text=is_text))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("'3'", "3"),
        ('"a b"', "a b"),
        ("fast", "fast"),
        ("'unclosed", "'unclosed"),
    ],
)
def test_a_constant_of_the_command_line_is_read_as_in_a_file_and_one_of_a_file_stays_what_it_is(written, meant) -> None:
    found = constant(written, is_text=True)
    assert (found, type(found)) == (meant, type(meant))
    assert constant(written, is_text=False) == written
    assert constant(meant, is_text=False) == meant


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
