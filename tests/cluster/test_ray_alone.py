"""A Ray cluster that a command starts itself, and removes completely."""

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
MARK = "RAY_ALONE_MARK"  # in the environment of everything that is started
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
    """A temporary folder with a path short enough for Ray's sockets."""
    if reason := ray_cluster.missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="ray") as made:
        yield Path(made)


def begin(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start `esper-ab WORDS` in its own session, as from a terminal."""
    own = environment(**{MARK: str(folder), "TMPDIR": str(folder / "tmp"), "RAY_ADDRESS": ""})
    (folder / "tmp").mkdir()
    command = [sys.executable, "-m", "esper_ab.commands.cli", *words]
    return subprocess.Popen(
        command, cwd=folder, env=own, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def left(folder: Path) -> dict[int, str]:
    """The live processes of `begin` in `folder`: pid -> command line."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                if f"{MARK}={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def sessions(lines: list[str]) -> set[Path]:
    """The folders of Ray sessions in these command lines."""
    return {Path(found) for line in lines for found in re.findall(r"/[^ ,:]*?/session_2[\d_-]+", line)}


def trains(folder):
    journal = folder / "experiments" / "lab" / "events.jsonl"
    return journal.exists() and journal.read_bytes().count(b'"kind":"released"') > 4


def test_ctrl_c_removes_the_cluster_that_the_command_started(folder):
    command = begin(folder, "launch", *FLAGS, "--name", "lab")
    eventually(lambda: trains(folder), PATIENCE_S)
    lines = list(left(folder).values())
    assert any("raylet" in line for line in lines)
    (session,) = sessions(lines)
    assert session.is_dir()
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does, to the command and all that is in front
    _, said = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == Interrupted.exit_code, said
    assert "stopped by Ctrl-C after the current barrier" in said
    eventually(lambda: not left(folder), 30.0)
    assert not session.exists()
    assert list((folder / "tmp").iterdir()) == []
    ended = disturbed.events_of(folder / "experiments" / "lab")[-1]
    assert ended.status == "interrupted"
