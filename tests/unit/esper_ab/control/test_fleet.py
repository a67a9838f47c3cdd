"""Workers start a limited number at a time; ending workers are killed in time and reported once."""

import errno
import os
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.plans import fake_plans

from esper_ab.contracts.errors import WorkerFailed
from esper_ab.control.fleet import Fleet
from esper_ab.control.hub import Hub
from esper_ab.control.rules import waves
from esper_ab.launchers import Launcher
from esper_ab.launchers.inline import InlineLauncher, InlineWorker

GRACE_S = 10.0
LONG_S = 100.0  # longer than any wait in these tests


class StuckWorker:
    """A worker that ends when it is killed, or not even then."""

    pid = 1
    keys = None
    ended_how = ""

    def __init__(self, order, obeys):
        self.name = order.identity
        self._obeys = obeys
        self.exitcode = None
        self.sentinel, self._end = os.pipe()
        self.waited_s = []

    def kill(self):
        if self._obeys:
            self.exitcode = -9

    def dump_stacks(self):
        """Write nothing."""

    def join(self, timeout_s):
        self.waited_s.append(timeout_s)
        return self.exitcode is not None

    def close(self):
        os.close(self.sentinel)
        os.close(self._end)


class StuckWorkers(Launcher):
    name = "stuck"
    transport = "ipc"
    child_processes = False
    descriptors = 3

    def __init__(self, obey, failing_starts=0):
        """The first `failing_starts` starts fail for lack of a descriptor."""
        super().__init__()
        self._obey = obey
        self._lacking = failing_starts
        self.started = []

    def start(self, order):
        if self._lacking:
            self._lacking -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self.started.append(StuckWorker(order, self._obey))
        return self.started[-1]


@contextmanager
def started_fleet(folder, launcher, plan=fake_plans.plan(cores=2)):  # noqa: B008 frozen
    with closing(Hub()) as hub:
        fleet = Fleet(folder, hub)
        fleet.start(plan, launcher, {})
        yield fleet
    for worker in launcher.started:
        worker.close()


class LateWorker(InlineWorker):
    """A thread that connects to the coordinator only after it was to be killed."""

    def __init__(self, order, entry):
        self._killed = threading.Event()
        super().__init__(order, entry)

    def _run(self):
        self._killed.wait()
        super()._run()

    def kill(self):
        self._killed.set()
        super().kill()


class LateWorkers(InlineLauncher):
    def start(self, order):
        return LateWorker(order, self.entry)


def test_a_thread_that_connects_during_the_stop_ends_without_the_grace_period(tmp_path):
    with closing(Hub()) as hub:
        fleet = Fleet(tmp_path, hub)
        fleet.start(fake_plans.plan(cores=2), LateWorkers("support.workers.fake_worker:main_in_thread"), {})
        fleet.stop("the experiment is finished", GRACE_S, lambda: False)
        assert [handle.worker.exitcode for handle in fleet] == [0, 0]


@pytest.mark.parametrize("obeys", [True, False])
def test_the_fleet_does_not_block_on_ending_workers(tmp_path, obeys):
    launcher = StuckWorkers(obeys)
    with started_fleet(tmp_path, launcher) as fleet:
        handles = list(fleet)
        now_s = time.monotonic()
        for handle in handles:
            fleet.end(handle, GRACE_S)
        assert fleet.any_ending
        assert fleet.ended(now_s) == []
        assert fleet.ended(now_s + GRACE_S + 1.0) == []  # killed now
        assert fleet.ended(now_s + LONG_S) == handles
        assert fleet.ended(now_s + LONG_S) == []
        assert not fleet.any_ending
        assert {timeout for worker in launcher.started for timeout in worker.waited_s} == {0.0}


def test_a_worker_that_exits_by_itself_is_reported_at_once(tmp_path):
    with started_fleet(tmp_path, StuckWorkers(obey=True)) as fleet:
        first_handle, second_handle = fleet
        for handle in (first_handle, second_handle):
            fleet.end(handle, GRACE_S)
        second_handle.worker.exitcode = 0
        assert fleet.ended(time.monotonic()) == [second_handle]
        assert fleet.any_ending


def test_the_number_of_workers_starting_at_a_time_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(waves, "AT_ONCE", 2)
    launcher = StuckWorkers(obey=True)
    now_s = time.monotonic()
    with started_fleet(tmp_path, launcher, fake_plans.plan(cores=4, groups=tuple("abcd"))) as fleet:
        assert [worker.name for worker in launcher.started] == ["w00/1", "w01/1"]
        fleet.greeted("w01/0")  # which was replaced
        assert fleet.start_due(now_s, LONG_S) == []
        fleet.greeted("w01/1")
        assert [handle.identity for handle in fleet.start_due(now_s, LONG_S)] == ["w02/1"]
        fleet.end(fleet.on_lane("cpu:0"), GRACE_S)
        assert [handle.identity for handle in fleet.start_due(now_s, LONG_S)] == ["w03/1"]


def test_a_start_without_a_free_descriptor_is_retried_for_a_limited_time(tmp_path):
    launcher_of_late_start = StuckWorkers(obey=True, failing_starts=2)
    launcher_of_no_start = StuckWorkers(obey=True, failing_starts=1000)
    now_s = time.monotonic()
    with started_fleet(tmp_path, launcher_of_late_start) as fleet:
        assert launcher_of_late_start.started == []
        assert len(fleet.start_due(now_s + GRACE_S, LONG_S)) == len(launcher_of_late_start.started) == 2
    with started_fleet(tmp_path, launcher_of_no_start) as fleet:
        assert fleet.start_due(now_s + GRACE_S, LONG_S) == []
        with pytest.raises(WorkerFailed, match=r"^worker w00/1 on cpu:0 could not be started within 100 s: no file"):
            fleet.start_due(now_s + 2 * LONG_S, LONG_S)


def test_an_unreadable_log_is_reported_without_raising_an_error(tmp_path, monkeypatch):
    def refuse(file):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))

    with started_fleet(tmp_path, StuckWorkers(obey=True)) as fleet:
        handle = fleet.on_lane("cpu:0")
        log = tmp_path / handle.order.log_file
        log.parent.mkdir()
        log.write_text("first\nlast\n")
        assert fleet.log_end(handle, 1, "") == f"the end of {log}:\n  last"
        monkeypatch.setattr(Path, "is_file", refuse)
        assert fleet.log_end(handle, 1, "") == f"cannot read {log}: Permission denied"
        assert fleet.log_end(handle, 1, "run.log") == f"cannot read {tmp_path / 'run.log'}: Permission denied"


def test_the_most_recently_written_log_is_quoted(tmp_path):
    with started_fleet(tmp_path, StuckWorkers(obey=True)) as fleet:
        handle = fleet.on_lane("cpu:0")
        log = tmp_path / handle.order.log_file
        run_log = tmp_path / "run.log"
        log.parent.mkdir()
        assert fleet.log_end(handle, 1, "run.log") == ""
        run_log.write_text("of the run\n")
        assert fleet.log_end(handle, 1, "run.log") == f"the end of {run_log}:\n  of the run"
        log.write_text("of the worker\n")
        os.utime(run_log, (1.0, 1.0))
        assert fleet.log_end(handle, 1, "run.log") == f"the end of {log}:\n  of the worker"
        os.utime(log, (0.5, 0.5))
        assert fleet.log_end(handle, 1, "run.log") == f"the end of {run_log}:\n  of the run"
