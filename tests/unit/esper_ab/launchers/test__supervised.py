"""Workers below one supervisor per node, on this machine without Slurm: deaths of workers and of supervisors."""

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


class SupervisedLauncher(Launcher):
    """Launch three workers below each of two supervisors, which are processes of this machine."""

    name = "supervised"
    transport = "tcp"
    descriptors = 1
    nodes = tuple(Node(name=name, cores=3) for name in NODES)
    own_descriptors = DESCRIPTORS * len(NODES)

    def __init__(self, entry="support.workers.fake_worker:main"):
        super().__init__()
        self._entry = entry
        self.supervisors = {}
        self._replaced = []

    def start(self, order):
        node = NODES[int(order.worker.removeprefix("w")) % 2]
        supervisor = self.supervisors.get(node)
        if supervisor is None or not supervisor.is_reliable:
            self._replaced += [] if supervisor is None else [supervisor]
            self.supervisors[node] = NodeSupervisor(
                node, partial(PipedSupervisor, isolated_command(supervisors.__file__))
            )
        return self.supervisors[node].start(order, self._entry)

    def release(self):
        for supervisor in (*self.supervisors.values(), *self._replaced):
            supervisor.dismiss()
            supervisor.leave()
        self.supervisors = {}
        self._replaced = []


@pytest.fixture(scope="module", autouse=True)
def _let_workers_import_test_support():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        yield


@pytest.fixture(scope="module")
def hash_with_threads(tmp_path_factory):
    return result_hash(fold(disturbed.run(tmp_path_factory.mktemp("run"), PLAN)))


class KillOnce(disturbed.Watcher):
    """Kill the worker of run c/0 or its supervisor once, when the run has recorded its second episode."""

    def __init__(self, *, supervisor):
        super().__init__(self._look)
        self._supervisor = supervisor
        self.pid = 0

    def _look(self, event):
        if not self.pid and isinstance(event, EpisodeRecorded) and event.record.run.name == "c/0":
            lane = event.record.run.device
            self.pid = next(
                start.pid for start in self.events if isinstance(start, WorkerStarted) and start.device == lane
            )
            stat = Path(f"/proc/{self.pid}/stat").read_text()
            os.kill(int(stat.rpartition(")")[2].split()[1]) if self._supervisor else self.pid, signal.SIGKILL)


@pytest.mark.parametrize(("supervisor", "deaths"), [(False, 1), (True, 3)])
def test_workers_are_restarted_after_they_or_their_supervisor_were_killed(
    tmp_path, hash_with_threads, supervisor, deaths
):
    watcher = KillOnce(supervisor=supervisor)
    events = disturbed.run(tmp_path / "run", PLAN, watcher, launcher=SupervisedLauncher())
    assert disturbed.counts(events) == {"worker_death": deaths, "restart": deaths}
    assert result_hash(fold(events)) == hash_with_threads
    assert not alive(watcher.pid)
    deaths_recorded = disturbed.incidents(events, "worker_death")
    assert {"was lost with its supervisor on n" in incident.detail for incident in deaths_recorded} == {supervisor}


@contextmanager
def started_supervisor(*command):
    """Start a supervisor by this command; kill and reap it at the end."""
    supervisor = NodeSupervisor("n9", partial(PipedSupervisor, command))
    try:
        yield supervisor
    finally:
        with suppress(ProcessLookupError):
            os.killpg(supervisor.pid, signal.SIGKILL)
        supervisor.dismiss()
        supervisor.leave()


def order_for(folder, worker="w00"):
    return order(worker=worker, experiment_dir=str(folder), log_file="logs/w00.log")


def test_invalid_output_of_a_supervisor_ends_its_workers(tmp_path):
    """The process writes bytes that are not UTF-8."""
    with started_supervisor(
        sys.executable, "-c", "import os, time; os.write(1, b'\\xff{}\\n'); time.sleep(600)"
    ) as supervisor:
        worker = supervisor.start(order_for(tmp_path), "")
        assert worker.join(PATIENCE_S)
        assert worker.exitcode == -signal.SIGKILL
        assert worker.ended_how == "was lost with its supervisor on n9"
        assert not supervisor.is_reliable


class UnreadableSupervisor:
    """A running supervisor whose output cannot be read."""

    pid = 1

    def __init__(self):
        self.killed = False

    def lines(self):
        raise OSError(errno.EIO, "the store is full")
        yield

    def write(self, line):
        """Accept every line."""

    def kill(self):
        self.killed = True

    def dismiss(self):
        """Do nothing: the supervisor is killed already."""

    def wait(self):
        """Return at once: the supervisor has exited."""


def test_unreadable_output_of_a_supervisor_ends_its_workers(tmp_path):
    carrier = UnreadableSupervisor()
    supervisor = NodeSupervisor("n9", lambda: carrier)
    worker = supervisor.start(order_for(tmp_path), "")
    assert worker.join(PATIENCE_S)
    assert worker.ended_how == "was lost with its supervisor on n9: [Errno 5] the store is full"
    assert carrier.killed
    assert not supervisor.is_reliable
    supervisor.dismiss()
    supervisor.leave()


def test_a_supervisor_that_fails_to_kill_a_worker_is_unreliable(tmp_path):
    """It hangs: a killed worker counts as running until the supervisor is given up."""
    with started_supervisor("sleep", "600") as supervisor:
        worker = supervisor.start(order_for(tmp_path), "")
        assert supervisor.is_reliable
        worker.kill()
        assert not worker.join(0.0)
        assert not supervisor.is_reliable
        supervisor.give_up()
        assert worker.join(PATIENCE_S)
        assert worker.ended_how.startswith("was lost with its supervisor on n9")


def test_the_coordinator_does_not_wait_for_a_lost_supervisor(tmp_path):
    """A child keeps the supervisor's standard error open; the coordinator has one thread and must not block on it."""
    count = 16
    waited_s = []

    @contextmanager
    def timer():
        begin_s = time.monotonic()
        yield
        waited_s.append(time.monotonic() - begin_s)

    script = f"for i in $(seq {count}); do read -r order; done; sleep 600 >&- & echo no more room >&2"
    with started_supervisor("sh", "-c", script) as supervisor:
        workers = [supervisor.start(order_for(tmp_path, f"w{number:02}"), "") for number in range(count)]
        while workers[0].exitcode is None:
            with timer():
                workers[0].join(0.01)
        with timer():
            workers.append(supervisor.start(order_for(tmp_path, "w99"), ""))
        assert max(waited_s) < 0.8
        assert {worker.exitcode for worker in workers} == {-signal.SIGKILL}
        assert {worker.ended_how for worker in workers} == {"was lost with its supervisor on n9: no more room"}
