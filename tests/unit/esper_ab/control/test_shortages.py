"""What a worker lacked is named by the counts of its own control group; where none can be made this cannot be shown."""

from __future__ import annotations

import signal
import subprocess
import sys

from support.children import environment
from support.groups import few_processes, inside, limited_memory

from esper_ab.contracts.messages import Lane, WorkerOrder
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control.fleet import WorkerHandle, ending
from esper_ab.control.shortages import Shortages

LIMIT_BYTES = 64 << 20
GREEDY = """
import signal, subprocess, sys
from esper_ab.control.shortages import Shortages
shortages = Shortages()
line = [sys.executable, "-c", "x = bytearray(1 << 30); print(len(x))"]
print(subprocess.run(line).returncode, shortages.ending(signal.SIGKILL))
"""
MANY = """
import signal, threading
from esper_ab.control.shortages import Shortages
shortages, done = Shortages(), threading.Event()
try:
    while True:
        threading.Thread(target=done.wait).start()
except RuntimeError:
    print(shortages.ending(signal.SIGABRT))
done.set()
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
    return WorkerHandle(order=order, worker=Gone(exitcode), shortages=Shortages() if here else None)


def said(folder, program):
    line = inside(folder, [sys.executable, "-c", program])
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False, timeout=120)
    assert not done.returncode, done.stderr
    return done.stdout


def test_out_of_memory_is_named_with_the_limit_of_the_group():
    with limited_memory(LIMIT_BYTES) as folder:
        told = said(folder, GREEDY)
    assert told.startswith("-9 was killed by SIGKILL: since it started the kernel has ended a process of its control")
    assert f"of control group {folder}: 0.06 GiB)" in told


def test_a_process_that_a_group_refuses_is_named_with_the_limit():
    with few_processes(8) as folder:
        told = said(folder, MANY)
    assert told.startswith("was killed by SIGABRT; since it started a process was refused: 8 of 8 are in use")
    assert f"(pids.max of control group {folder})" in told


def test_another_death_is_not_taken_for_it():
    assert "has not said so" in ending(handle(-signal.SIGKILL))
    assert ending(handle(-signal.SIGSEGV)) == "was killed by SIGSEGV"
    assert ending(handle(-40)) == "was killed by signal 40"
    assert ending(handle(-40, here=False)) == "was killed by signal 40 on node7"
    assert ending(handle(3)) == "ended with exit status 3"
