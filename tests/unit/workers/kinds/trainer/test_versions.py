import os
import platform
import sys

import pytest

from workers.kinds.trainer.versions import versions_of


@pytest.mark.parametrize("reference", ["/project/train.py:train", f"env A=1 {sys.executable} train.py --seed {{seed}}"])
def test_versions_of_python_and_packages_are_told(tmp_path, reference):
    versions = versions_of(reference, str(tmp_path), os.environ)
    assert versions["Python"] == platform.python_version()
    assert "msgspec" in versions


def test_a_launcher_of_environments_is_asked_for_its_python(tmp_path):
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    uv.chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    assert versions_of("uv run train.py --seed {seed}", str(tmp_path), variables)["Python"] == platform.python_version()


@pytest.mark.parametrize("command", ["sh train.sh {seed}", "./train.py {seed}", "nosuch/python train.py {seed}"])
def test_versions_are_unknown_if_the_command_does_not_show_its_python(tmp_path, command):
    assert versions_of(command, str(tmp_path), os.environ) == {}
