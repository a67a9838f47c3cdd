"""A second command that asks the same is refused while a gate is planned; nothing of the lock is left."""

import os
import signal
import subprocess
import sys

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.gate.planning_lock import planned_alone

HOLDING = """
import sys
from pathlib import Path
from esper_ab.gate.planning_lock import planned_alone
with planned_alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_command_names_the_process(tmp_path):
    directory = tmp_path / "my experiments" / "gate-1"
    with planned_alone(directory):
        expected = rf"gate-1: this gate is running \(process {os.getpid()} on "
        with pytest.raises(UsageError, match=expected), planned_alone(directory):
            pass
        with planned_alone(directory.with_name("gate-2")):
            pass
        assert [path.name for path in directory.parent.iterdir()] == [".gate-1"]
        assert (directory.parent / ".gate-1/.gitignore").is_file()  # a killed process leaves it
    assert list(directory.parent.iterdir()) == []


def test_what_a_killed_process_has_left_is_used_anew(tmp_path):
    directory = tmp_path / "gate-1"
    words = [sys.executable, "-c", HOLDING, str(directory)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match=f"process {process.pid} on "), planned_alone(directory):
            pass
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / ".gate-1").is_dir()
    with planned_alone(directory):
        pass
    assert list(tmp_path.iterdir()) == []
