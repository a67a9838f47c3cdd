"""Settings of the launcher in files and Python: keys are checked and typed, and flags override files."""

import pytest
from msgspec.structs import replace

from esper_ab.commands._launcher_flags import read_launcher_flags
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.launcher import NOT_GIVEN, AskedLauncher, asked_launcher
from esper_ab.settings.settings_file import read_toml

NO_FLAGS = {"launcher": None, "transport": None, "ray_address": None, "ray_label": (), "ray_wait": None}
FILE = """
groups = ["shaped", "wait"]

[launcher]
name = "ray"
transport = "tcp"
ray_address = "10.0.0.1:6379"
ray_label.kind = "h100"
ray_wait = 60
"""
FROM_FILE = AskedLauncher(
    launcher="ray", transport="tcp", ray_address="10.0.0.1:6379", ray_label={"kind": "h100"}, ray_wait=60.0
)


def read_file(tmp_path, text):
    file = tmp_path / "rates.toml"
    file.write_text(text)
    return read_toml(file).launcher


def test_a_toml_file_can_set_the_launcher(tmp_path):
    assert read_file(tmp_path, FILE) == FROM_FILE
    assert read_file(tmp_path, 'groups = ["shaped", "wait"]\n') == NOT_GIVEN


def test_launcher_flags_override_a_file():
    flags = read_launcher_flags(NO_FLAGS | {"ray_address": "auto", "ray_label": ("zone=a",)})
    assert flags.over(FROM_FILE) == replace(FROM_FILE, ray_address="auto", ray_label={"zone": "a"})
    assert read_launcher_flags(NO_FLAGS) == NOT_GIVEN


def test_launcher_arguments_in_python_have_python_names():
    assert asked_launcher({"launcher": "ray", "ray_label": {"kind": "h100"}}, "run_ab_test").own == {
        "ray_label": {"kind": "h100"}
    }
    with pytest.raises(UsageError, match="run_ab_test: ray_wait '60': Expected `float`"):
        asked_launcher({"ray_wait": "60"}, "run_ab_test")


@pytest.mark.parametrize(
    ("launcher_settings", "words"),
    [
        ({}, ""),
        ({"launcher": "slurm"}, "--launcher slurm"),
        ({"launcher": "ray", "ray_wait": 60.0}, "--launcher ray --ray-wait 60"),
        ({"ray_wait": 0.5, "transport": "tcp"}, "--transport tcp --ray-wait 0.5"),
        ({"ray_label": {"kind": "h100", "zone": "a"}}, "--ray-label kind=h100 --ray-label zone=a"),
    ],
)
def test_launcher_settings_are_printed_as_flags(launcher_settings, words):
    launcher = AskedLauncher(**launcher_settings)
    assert " ".join(launcher.words) == words
    flags = dict(zip(launcher.words[::2], launcher.words[1::2], strict=True))
    assert set(flags) == {f"--{key.replace('_', '-')}" for key in launcher_settings}
