"""The nanny of a node, as a process that is fed lines: what it cannot do for one worker costs no other."""

from __future__ import annotations

import shutil
import signal
import subprocess

import msgspec
import pytest
from support.children import environment

from esper_ab.contracts.own_packages import ORPHANED, child_command
from esper_ab.launchers._nanny import NOT_STARTED
from esper_ab.launchers._node_talk import Admit, Begin, FromNanny, KeySaid, Over, Signal, line

ORDERS = (Admit, lambda name: Signal(name, signal.SIGUSR1), lambda name: Signal(name, signal.SIGKILL))


@pytest.fixture
def folder(tmp_path):
    """The nanny's working directory, in which it starts workers."""
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def nanny(folder):
    command = child_command("esper_ab.launchers._node_nanny", "support.fake_worker:main", outlives=True)
    process = subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        yield process
        process.kill()


def told(nanny, *messages):
    nanny.stdin.write(b"".join(map(line, messages)))
    nanny.stdin.flush()


def heard(nanny):
    text = nanny.stdout.readline()
    assert text, nanny.stderr.read().decode()
    return msgspec.json.decode(text, type=FromNanny)


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_about_a_worker_that_is_not_there_is_none(nanny, folder, order):
    """It is over, it could not be started, or nobody has heard of it."""
    told(nanny, order("w09/1"), Begin("w00/1", "{}"))  # no order of a worker, upon which it ends
    assert heard(nanny) == KeySaid("w00/1", "")
    assert isinstance(heard(nanny), Over)
    shutil.rmtree(folder)
    told(nanny, order("w00/1"), Begin("w01/1", "{}"), order("w01/1"), Begin("w02/1", "{}"))
    for name in ("w01/1", "w02/1"):
        over = heard(nanny)
        assert (over.name, over.status) == (name, NOT_STARTED)
    nanny.stdin.close()
    assert nanny.wait() == ORPHANED
