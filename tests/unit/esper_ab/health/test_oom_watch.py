"""A worker that the kernel killed for lack of memory is told from another; without control groups this is not shown."""

from __future__ import annotations

import signal
import subprocess
import sys

from support.children import environment
from support.groups import inside, limited_memory

from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control.fleet import WorkerHandle, ending
from esper_ab.health.control_groups import OomWatch

LIMIT_BYTES = 64 << 20
GREEDY = """
import signal, subprocess, sys
from esper_ab.health.control_groups import OomWatch
watch = OomWatch()
line = [sys.executable, "-c", "x = bytearray(1 << 30); print(len(x))"]
print(subprocess.run(line).returncode, watch.ending(signal.SIGKILL))
"""


class Gone:
    """A worker that has ended."""

    name, pid, sentinel, ended_how = "w00/1", 1, -1, ""

    def __init__(self, exitcode):
        self.exitcode = exitcode


def handle(exitcode, *, here=True):
    order = WorkerOrder(
        endpoint="", worker="w00", incarnation=1, lane=Lane(name="cpu:0", devices=("cpu:0",), uuids=("",)),
        arithmetic=Arithmetic(), experiment_dir="", log_file="", node="" if here else "node7",
    )  # fmt: skip
    return WorkerHandle(order=order, worker=Gone(exitcode), oom=OomWatch() if here else None)


def test_out_of_memory_is_named_with_the_limit_of_the_group():
    with limited_memory(LIMIT_BYTES) as folder:
        line = inside(folder, [sys.executable, "-c", GREEDY])
        done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False, timeout=120)
    assert not done.returncode, done.stderr
    assert done.stdout.startswith("-9 was killed by SIGKILL: since it started the kernel has ended a process for want")
    assert f"of control group {folder}: 0.06 GiB)" in done.stdout


def test_another_death_is_not_taken_for_it():
    assert "has not said so" in ending(handle(-signal.SIGKILL))
    assert ending(handle(-signal.SIGSEGV)) == "was killed by SIGSEGV"
    assert ending(handle(-40)) == "was killed by signal 40"
    assert ending(handle(-40, here=False)) == "was killed by signal 40 on node7"
    assert ending(handle(3)) == "ended with exit status 3"
