"""A reward function that forks: the child must not act as a second worker nor outlive the first."""

import os
import signal
import subprocess
import sys

import pytest
from support.coordinators.killed_processes import PATIENCE_S, alive
from support.processes.children import environment
from support.processes.waiting import eventually

from esper_ab.contracts.messages import Progress
from esper_ab.contracts.records import RunRef
from workers.process.link import Link

RUN = RunRef(name="a/0", group_id="a", replicate=0, reward_mode="shaped", controller="ppo", device="cpu:0")
SIGN = Progress(run=RUN, milestone=1, step=1, phase="train")
FORKER = """
import os, sys, threading
from workers.process import setup
setup.forked_children_end_with_it()
def fork():
    child = os.fork()
    if not child:
        threading.Event().wait()
    print(child, flush=True)
if sys.argv[1] == "main":
    fork()
else:
    other = threading.Thread(target=fork)
    other.start()
    other.join()
sys.stdin.read()
"""


@pytest.mark.parametrize("call", [lambda link: link.send(SIGN), lambda link: link.close(is_finished=True)])
def test_a_forked_child_exits_if_it_uses_the_link_of_its_worker(tmp_path, call):
    link = Link(f"ipc://{tmp_path}/nobody", "w00/1")
    child = os.fork()
    if not child:
        call(link)
        os._exit(0)
    try:
        _, status = eventually(lambda: (waited := os.waitpid(child, os.WNOHANG))[0] and waited, PATIENCE_S)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        raise
    assert os.waitstatus_to_exitcode(status) == 71
    link.send(SIGN)
    link.close(is_finished=False)


@pytest.mark.parametrize("thread", ["main", "other"])
def test_a_child_forked_by_the_main_thread_ends_with_its_worker(thread):
    line = [sys.executable, "-c", FORKER, thread]
    with subprocess.Popen(line, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        child = int(worker.stdout.readline())
        worker.kill()
    try:
        if thread == "main":
            eventually(lambda: not alive(child), PATIENCE_S)
        assert alive(child) is (thread == "other"), "a thread may end long before its process"
    finally:
        if alive(child):
            os.kill(child, signal.SIGKILL)
