import pytest

from esper_ab.contracts.errors import Interrupted, SettingName, UsageError, naming

ALONE = "esper-ab resume x/determinism"
ALL = "esper-ab calibrate --runs 4 --name x"


def test_an_error_names_the_command_that_knows_more():
    with pytest.raises(Interrupted) as caught, naming(ALL, instead_of=ALONE):
        raise Interrupted(f"stopped\nto go on: {ALONE}")
    assert str(caught.value) == f"stopped\nto go on: {ALL}"


def test_settings_that_an_error_names_stay_what_they_are():
    with pytest.raises(UsageError) as caught, naming(ALL, instead_of=ALONE):
        raise UsageError(SettingName("n_envs", 2), f": not with `{ALONE}`")
    assert str(caught.value) == f"--n-envs 2: not with `{ALL}`"
