import pytest

from esper_ab.contracts.errors import Interrupted, SettingName, UsageError, naming

PART_COMMAND = "esper-ab resume x/determinism"
WHOLE_COMMAND = "esper-ab calibrate --runs 4 --name x"


def test_an_error_about_one_part_names_the_command_of_the_whole_experiment():
    with pytest.raises(Interrupted) as caught, naming(WHOLE_COMMAND, replaced_command=PART_COMMAND):
        raise Interrupted(f"stopped\nto go on: {PART_COMMAND}")
    assert str(caught.value) == f"stopped\nto go on: {WHOLE_COMMAND}"


def test_replacing_a_command_in_an_error_keeps_its_settings():
    with pytest.raises(UsageError) as caught, naming(WHOLE_COMMAND, replaced_command=PART_COMMAND):
        raise UsageError(SettingName("n_envs", 2), f": not with `{PART_COMMAND}`")
    assert str(caught.value) == f"--n-envs 2: not with `{WHOLE_COMMAND}`"


def test_a_notebook_shows_an_error_in_one_line():
    error = UsageError("the margin is missing; give ", SettingName("margin", 2))
    assert error._render_traceback_() == ["UsageError: the margin is missing; give --margin 2"]
