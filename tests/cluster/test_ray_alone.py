"""A cluster of Ray that a command starts itself, of which nothing is left; one whose head is lost in an experiment."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from support import conducted, ray_cluster
from support.patience import eventually
from support.ray_alone import FLAGS, begin, left, sessions

from esper_ab.contracts.errors import Interrupted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE_S = 300.0
LONG = ("--episodes", "4000")  # longer than it takes to lose a head


@pytest.fixture
def folder():
    """With a short path, in which Ray's sockets have room."""
    if reason := ray_cluster.missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="ray") as made:
        yield Path(made)


def trains(folder, name):
    journal = folder / "experiments" / name / "events.jsonl"
    return lambda: journal.exists() and journal.read_bytes().count(b'"kind":"released"') > 4


def test_ctrl_c_leaves_nothing_of_a_cluster_that_the_command_has_started(folder):
    command = begin(folder, "launch", *FLAGS, *LONG, "--name", "lab")
    eventually(trains(folder, "lab"), PATIENCE_S)
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
    ended = conducted.events_of(folder / "experiments" / "lab")[-1]
    assert ended.status == "interrupted"
