"""The supervisor of a node, as a process that is fed lines: what it cannot do for one worker costs no other."""

from __future__ import annotations

import shutil
import signal
import subprocess

import msgspec
import pytest
from support.children import environment

from esper_ab.contracts.own_packages import ORPHANED, child_command
from esper_ab.launchers._node_talk import Admit, Begin, FromSupervisor, KeySaid, Over, Signal, line
from esper_ab.launchers._supervisor import NOT_STARTED

ORDERS = (Admit, lambda name: Signal(name, signal.SIGUSR1), lambda name: Signal(name, signal.SIGKILL))


@pytest.fixture
def folder(tmp_path):
    """The supervisor's working directory, in which it starts workers."""
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def supervisor(folder):
    command = child_command("esper_ab.launchers._node_supervisor", "support.fake_worker:main", outlives=True)
    process = subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        yield process
        process.kill()


def told(supervisor, *messages):
    supervisor.stdin.write(b"".join(map(line, messages)))
    supervisor.stdin.flush()


def heard(supervisor):
    text = supervisor.stdout.readline()
    assert text, supervisor.stderr.read().decode()
    return msgspec.json.decode(text, type=FromSupervisor)


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_about_a_worker_that_is_not_there_is_none(supervisor, folder, order):
    """It is over, it could not be started, or nobody has heard of it."""
    told(supervisor, order("w09/1"), Begin("w00/1", "{}"))  # no order of a worker, upon which it ends
    assert heard(supervisor) == KeySaid("w00/1", "")
    assert isinstance(heard(supervisor), Over)
    shutil.rmtree(folder)
    told(supervisor, order("w00/1"), Begin("w01/1", "{}"), order("w01/1"), Begin("w02/1", "{}"))
    for name in ("w01/1", "w02/1"):
        over = heard(supervisor)
        assert (over.name, over.status) == (name, NOT_STARTED)
    supervisor.stdin.close()
    assert supervisor.wait() == ORPHANED
