"""Workers beside supervisors of whole nodes, on this machine without Slurm: ends, and supervisors that are lost."""

import errno
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from support.coordinators import disturbed
from support.coordinators.killed_processes import alive
from support.plans import fake_plans
from support.plans.worker_orders import order
from support.processes.children import environment

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts import supervisor as supervisors
from esper_ab.contracts.own_packages import isolated_command
from esper_ab.journal.events import EpisodeRecorded, WorkerStarted
from esper_ab.journal.fold import fold
from esper_ab.launchers import Launcher, Node
from esper_ab.launchers._supervised import DESCRIPTORS, NodeSupervisor, PipedSupervisor

PLAN = fake_plans.plan(6, ("a", "b", "c"), seeds=4, episodes=3)
NODES = ("n0", "n1")
PATIENCE_S = 60.0


class Beside(Launcher):
    """Three workers beside each of two supervisors, which are processes of this machine."""

    name = "beside"
    transport = "tcp"
    descriptors = 1
    nodes = tuple(Node(name=name, cores=3) for name in NODES)
    own_descriptors = DESCRIPTORS * len(NODES)

    def __init__(self, entry="support.workers.fake_worker:main"):
        super().__init__()
        self._entry = entry
        self.supervisors = {}
        self.before = []

    def start(self, order):
        node = NODES[int(order.worker.removeprefix("w")) % 2]
        there = self.supervisors.get(node)
        if there is None or not there.is_reliable:
            self.before += [] if there is None else [there]
            self.supervisors[node] = NodeSupervisor(
                node, partial(PipedSupervisor, isolated_command(supervisors.__file__))
            )
        return self.supervisors[node].start(order, self._entry)

    def release(self):
        for supervisor in (*self.supervisors.values(), *self.before):
            supervisor.dismiss()
            supervisor.leave()
        self.supervisors = {}
        self.before = []


@pytest.fixture(scope="module", autouse=True)
def _workers_find_what_tests_share():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        yield


@pytest.fixture(scope="module")
def on_threads(tmp_path_factory):
    return result_hash(fold(disturbed.run(tmp_path_factory.mktemp("run"), PLAN)))


class Striking(disturbed.Watcher):
    """Kills the worker of run c/0 or its supervisor, once, when the run has recorded its second episode."""

    def __init__(self, *, supervisor):
        super().__init__(self._look)
        self._supervisor = supervisor
        self.pid = 0

    def _look(self, event):
        if not self.pid and isinstance(event, EpisodeRecorded) and event.record.run.name == "c/0":
            lane = event.record.run.device
            self.pid = next(one.pid for one in self.events if isinstance(one, WorkerStarted) and one.device == lane)
            stat = Path(f"/proc/{self.pid}/stat").read_text()
            os.kill(int(stat.rpartition(")")[2].split()[1]) if self._supervisor else self.pid, signal.SIGKILL)


@pytest.mark.parametrize(("supervisor", "deaths"), [(False, 1), (True, 3)])
def test_a_worker_alone_or_all_of_a_supervisor_are_followed_by_others(tmp_path, on_threads, supervisor, deaths):
    watcher = Striking(supervisor=supervisor)
    events = disturbed.run(tmp_path / "run", PLAN, watcher, launcher=Beside())
    assert disturbed.counts(events) == {"worker_death": deaths, "restart": deaths}
    assert result_hash(fold(events)) == on_threads
    assert not alive(watcher.pid)
    said = disturbed.incidents(events, "worker_death")
    assert {"was lost with its supervisor on n" in one.detail for one in said} == {supervisor}


@contextmanager
def begun(*command):
    """A supervisor that is started by this command."""
    supervisor = NodeSupervisor("n9", partial(PipedSupervisor, command))
    try:
        yield supervisor
    finally:
        with suppress(ProcessLookupError):
            os.killpg(supervisor.pid, signal.SIGKILL)
        supervisor.dismiss()
        supervisor.leave()


def ordered(folder, worker="w00"):
    return order(worker=worker, experiment_dir=str(folder), log_file="logs/w00.log")


def test_output_of_a_process_that_is_no_supervisor_is_refused(tmp_path):
    """It says bytes that are no text; its workers are lost, and say so."""
    with begun(sys.executable, "-c", "import os, time; os.write(1, b'\\xff{}\\n'); time.sleep(600)") as supervisor:
        worker = supervisor.start(ordered(tmp_path), "")
        assert worker.join(PATIENCE_S)
        assert worker.exitcode == -signal.SIGKILL
        assert worker.ended_how == "was lost with its supervisor on n9"
        assert not supervisor.is_reliable


class Unheard:
    """A supervisor that runs, but whose lines cannot be read."""

    pid = 1

    def __init__(self):
        self.killed = False

    def lines(self):
        raise OSError(errno.EIO, "the store is full")
        yield

    def write(self, line):
        """It takes every line."""

    def kill(self):
        self.killed = True

    def dismiss(self):
        """It is killed already."""

    def wait(self):
        """It has ended."""


def test_a_supervisor_that_cannot_be_heard_any_more_is_lost_with_its_workers(tmp_path):
    carrier = Unheard()
    supervisor = NodeSupervisor("n9", lambda: carrier)
    worker = supervisor.start(ordered(tmp_path), "")
    assert worker.join(PATIENCE_S)
    assert worker.ended_how == "was lost with its supervisor on n9: [Errno 5] the store is full"
    assert carrier.killed
    assert not supervisor.is_reliable
    supervisor.dismiss()
    supervisor.leave()


def test_a_supervisor_that_does_not_end_a_worker_is_not_relied_on(tmp_path):
    """It stands still: whoever is told to end there counts as there, until the supervisor is given up."""
    with begun("sleep", "600") as supervisor:
        worker = supervisor.start(ordered(tmp_path), "")
        assert supervisor.is_reliable
        worker.kill()
        assert not worker.join(0.0)
        assert not supervisor.is_reliable
        supervisor.give_up()
        assert worker.join(PATIENCE_S)
        assert worker.ended_how.startswith("was lost with its supervisor on n9")


def test_a_lost_supervisor_is_not_waited_for(tmp_path):
    """A child of it keeps its standard error open. The coordinator, which has one thread, goes on meanwhile."""
    count = 16
    waited_s = []

    @contextmanager
    def timed():
        began = time.monotonic()
        yield
        waited_s.append(time.monotonic() - began)

    script = f"for i in $(seq {count}); do read -r order; done; sleep 600 >&- & echo no more room >&2"
    with begun("sh", "-c", script) as supervisor:
        workers = [supervisor.start(ordered(tmp_path, f"w{number:02}"), "") for number in range(count)]
        while workers[0].exitcode is None:
            with timed():
                workers[0].join(0.01)
        with timed():
            workers.append(supervisor.start(ordered(tmp_path, "w99"), ""))
        assert max(waited_s) < 0.8
        assert {worker.exitcode for worker in workers} == {-signal.SIGKILL}
        assert {worker.ended_how for worker in workers} == {"was lost with its supervisor on n9: no more room"}
