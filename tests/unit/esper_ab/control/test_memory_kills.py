"""A process that outgrows its control group is counted; where no group can be made this cannot be shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control.fleet import WorkerHandle, ending
from esper_ab.control.memory_kills import memory_kills

LIMIT_BYTES = 64 << 20
GREEDY = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); x = bytearray(1 << 30); print(len(x))"


@pytest.fixture
def group():
    """A control group with little memory; (its folder)."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        folder = Path(root) / f"esper-test-{os.getpid()}"
        try:
            folder.mkdir()
            (folder / limit).write_text(str(LIMIT_BYTES))
        except OSError:
            if folder.exists():
                folder.rmdir()
            continue
        yield folder
        folder.rmdir()
        return
    pytest.skip("no control group can be made here")


class Gone:
    """A worker that has ended."""

    name, pid, sentinel = "w00/1", 1, -1

    def __init__(self, exitcode):
        self.exitcode = exitcode


def handle(exitcode, before):
    order = WorkerOrder(
        endpoint="", worker="w00", incarnation=1, lane=Lane(name="cpu:0", devices=("cpu:0",), uuids=("",)),
        arithmetic=Arithmetic(), experiment_dir="", log_file="",
    )  # fmt: skip
    return WorkerHandle(order=order, worker=Gone(exitcode), kills_before=before)


def test_out_of_memory_is_named(group):
    before = memory_kills()
    line = [sys.executable, "-c", GREEDY, str(group / "cgroup.procs")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    assert memory_kills() > before
    assert "for want of memory" in ending(handle(done.returncode, before))


def test_another_death_is_not_taken_for_it():
    before = memory_kills()
    assert "has not said so" in ending(handle(-signal.SIGKILL, before))
    assert ending(handle(-signal.SIGSEGV, before - 1)) == "was killed by SIGSEGV"
    assert ending(handle(3, before - 1)) == "ended with exit status 3"
