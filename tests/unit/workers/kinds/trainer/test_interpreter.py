import os
import sys
from pathlib import Path

import msgspec
import pytest

from esper_ab.contracts import users_shell
from esper_ab.contracts.worker_order import UsersShell
from workers.kinds.trainer.interpreter import other_interpreter

OURS = str(Path(sys.executable).parent)


def shell_with(path: str) -> UsersShell:
    variables = b"".join(b"%s=%s\0" % (os.fsencode(name), os.fsencode(value)) for name, value in os.environ.items())
    own = b"PATH=%s\0" % os.fsencode(path)
    return msgspec.structs.replace(users_shell.of_this_process(), environment=variables + own)


def other_python(folder: Path, says: str = "echo /opt/bin/python3; echo 3.9.1") -> str:
    """Make a program called python, which answers like the interpreter of another environment."""
    (folder / "python").write_text(f"#!/bin/sh\n{says}\n")
    (folder / "python").chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("command", ["python train.py {seed}", "env A=1 python train.py", "python -m train"])
def test_the_python_of_the_shell_is_reported_with_its_version(tmp_path: Path, command: str) -> None:
    path = f"{other_python(tmp_path)}{os.pathsep}{OURS}"
    assert other_interpreter(command, shell_with(path)) == "/opt/bin/python3 (3.9.1)"


@pytest.mark.parametrize("command", ["./train.sh {seed}", "torchrun train.py", "/usr/bin/python train.py", "env A=1"])
def test_no_python_is_reported_for_commands_that_do_not_start_one(tmp_path: Path, command: str) -> None:
    assert other_interpreter(command, shell_with(other_python(tmp_path))) == ""


def test_the_python_of_this_installation_is_not_reported(tmp_path: Path) -> None:
    assert other_interpreter("python train.py", shell_with(f"{OURS}{os.pathsep}{other_python(tmp_path)}")) == ""


def test_a_shim_for_the_python_of_this_installation_is_not_reported(tmp_path: Path) -> None:
    path = other_python(tmp_path, f"echo {sys.executable}; echo 3.11")
    assert other_interpreter("python train.py", shell_with(path)) == ""


@pytest.mark.parametrize("says", ["exit 1", "echo no version", ""])
def test_an_unresponsive_python_is_reported_by_its_path(tmp_path: Path, says: str) -> None:
    folder = other_python(tmp_path, says)
    assert other_interpreter("python train.py", shell_with(folder)) == f"{folder}/python"
