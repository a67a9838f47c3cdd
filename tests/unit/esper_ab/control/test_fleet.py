"""Workers that are to be ended: nobody waits for them, those that do not leave are killed, and each is told of once."""

from __future__ import annotations

import os
import time
from contextlib import closing

import pytest
from support import fake_plans

from esper_ab.control.fleet import Fleet
from esper_ab.control.hub import Hub
from esper_ab.launchers import Launcher

GRACE_S = 10.0
LONG_S = 100.0  # longer than anything here is waited for


class StuckWorker:
    """It leaves when it is killed, or not even then."""

    pid, keys, ended_how = 1, None, ""

    def __init__(self, order, obeys):
        self.name, self._obeys, self.exitcode = order.identity, obeys, None
        self.sentinel, self._end = os.pipe()
        self.waited_s = []

    def kill(self):
        if self._obeys:
            self.exitcode = -9

    def dump_stacks(self):
        """It has none."""

    def join(self, timeout_s):
        self.waited_s.append(timeout_s)
        return self.exitcode is not None

    def close(self):
        os.close(self.sentinel)
        os.close(self._end)


class StuckWorkers(Launcher):
    name, transport, child_processes, descriptors = "stuck", "ipc", False, 3

    def __init__(self, obey):
        super().__init__()
        self._obey, self.started = obey, []

    def start(self, order):
        self.started.append(StuckWorker(order, self._obey))
        return self.started[-1]


@pytest.mark.parametrize("obeys", [True, False])
def test_nobody_waits_for_workers_that_are_to_end(tmp_path, obeys):
    launcher = StuckWorkers(obeys)
    with closing(Hub()) as hub:
        fleet = Fleet(tmp_path, hub)
        fleet.start(fake_plans.plan(cores=2, seeds=1), launcher, {})
        handles, now = list(fleet), time.monotonic()
        for handle in handles:
            fleet.end(handle, GRACE_S)
        assert fleet.any_ending
        assert fleet.ended(now) == []
        assert fleet.ended(now + GRACE_S + 1.0) == []  # killed now
        assert fleet.ended(now + LONG_S) == handles
        assert fleet.ended(now + LONG_S) == []
        assert not fleet.any_ending
        assert {timeout for worker in launcher.started for timeout in worker.waited_s} == {0.0}
    for worker in launcher.started:
        worker.close()


def test_a_worker_that_leaves_by_itself_is_told_of_at_once(tmp_path):
    launcher = StuckWorkers(obey=True)
    with closing(Hub()) as hub:
        fleet = Fleet(tmp_path, hub)
        fleet.start(fake_plans.plan(cores=2, seeds=1), launcher, {})
        first, second = fleet
        for handle in (first, second):
            fleet.end(handle, GRACE_S)
        second.worker.exitcode = 0
        assert fleet.ended(time.monotonic()) == [second]
        assert fleet.any_ending
    for worker in launcher.started:
        worker.close()
