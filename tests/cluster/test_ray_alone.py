"""A Ray cluster that a command starts by itself is removed completely."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.clusters import ray_cluster
from support.coordinators import disturbed
from support.processes.children import environment
from support.processes.waiting import eventually

from esper_ab.contracts.errors import Interrupted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE_S = 300.0
MARK = "RAY_ALONE_MARK"  # in the environment of every process that is started
FLAGS = (  # longer than it takes to lose a head
    "--task",
    "synthetic",
    "--groups",
    "shaped,wait",
    "--seeds",
    "3",
    "--looks",
    "3",
    "--n-envs",
    "2",
    "--steps",
    "4",
    "--launcher",
    "ray",
    "--quiet",
    "--devices",
    "cpu:0",
    "cpu:1",
    "--episodes",
    "4000",
)


@pytest.fixture
def folder():
    """Make a temporary folder with a path short enough for Ray's sockets."""
    if reason := ray_cluster.missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="ray") as path:
        yield Path(path)


def start_command(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start `esper-ab WORDS` in its own session, as from a terminal."""
    variables = environment(**{MARK: str(folder), "TMPDIR": str(folder / "tmp"), "RAY_ADDRESS": ""})
    (folder / "tmp").mkdir()
    command = [sys.executable, "-m", "esper_ab.commands.cli", *words]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def live_processes(folder: Path) -> dict[int, str]:
    """Return the live processes of `start_command` in `folder`: pid -> command line."""
    command_lines = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                if f"{MARK}={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    command_lines[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return command_lines


def sessions(lines: list[str]) -> set[Path]:
    """Return the folders of Ray sessions in these command lines."""
    return {Path(path) for line in lines for path in re.findall(r"/[^ ,:]*?/session_2[\d_-]+", line)}


def is_training(folder):
    journal = folder / "experiments" / "lab" / "events.jsonl"
    return journal.exists() and journal.read_bytes().count(b'"kind":"released"') > 4


def test_ctrl_c_removes_the_cluster_that_the_command_started(folder):
    command = start_command(folder, "launch", *FLAGS, "--name", "lab")
    eventually(lambda: is_training(folder), PATIENCE_S)
    lines = list(live_processes(folder).values())
    assert any("raylet" in line for line in lines)
    (session,) = sessions(lines)
    assert session.is_dir()
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does, to the command and its process group
    _, errors = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == Interrupted.exit_code, errors
    assert "stopped by Ctrl-C after the current barrier" in errors
    eventually(lambda: not live_processes(folder), 30.0)
    assert not session.exists()
    assert list((folder / "tmp").iterdir()) == []
    last_event = disturbed.events_of(folder / "experiments" / "lab")[-1]
    assert last_event.status == "interrupted"
