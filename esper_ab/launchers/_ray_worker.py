"""A worker on a cluster of Ray, the supervisor of its lane, and the thread that hears what becomes of both.

Ray answers calls on threads of its own, where nothing may wait: everything is handed to the experiment's one clerk.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from esper_ab.contracts.errors import UsageError, WorkerFailed
from esper_ab.contracts.messages import WorkerOrder
from esper_ab.contracts.own_packages import child_environment
from esper_ab.launchers import KeyExchange, _last_words
from esper_ab.launchers._ray_cluster import NotYet, RayCluster, SupervisorEnded
from esper_ab.launchers._sentinel import wait_for
from esper_ab.launchers._supervisor import ERRAND, NOT_STARTED, Ending

_AGAIN_S = 1.0  # between two questions to an actor of which Ray does not know whether it is there
_TALK_S = 10.0

Task = Callable[[], None]


class Clerk:
    """A thread that does one task after the other, some of them later."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[float, Task | None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="ray", daemon=True).start()

    def do(self, task: Task, after_s: float = 0.0) -> None:
        self._tasks.put((time.monotonic() + after_s, task))

    def close(self) -> None:
        """It does nothing from now on."""
        self._tasks.put((0.0, None))

    def _work(self) -> None:
        later: list[tuple[float, int, Task]] = []
        number = itertools.count()
        while True:
            wait_s = max(0.0, later[0][0] - time.monotonic()) if later else None
            with suppress(queue.Empty):
                due, task = self._tasks.get(timeout=wait_s)
                if task is None:
                    return
                heapq.heappush(later, (due, next(number), task))
            while later and later[0][0] <= time.monotonic():
                heapq.heappop(later)[2]()


class LaneSupervisor:
    """The present supervisor of a lane. Another one takes its place when it is gone, or does not end what it should."""

    def __init__(self, cluster: RayCluster, clerk: Clerk, begin: Callable[[], Any]) -> None:
        self._cluster, self._clerk, self._begin = cluster, clerk, begin
        self._suspects: list[RayWorker] = []  # told to end
        self._place: tuple[str, list[str]] | None = None
        self._lost = False
        self._renew()

    def _renew(self) -> None:
        self.actor = self._begin()
        self._lost, self._place, self._suspects = False, None, []
        self._asked = self.actor.place.remote()
        self._hear_of(self.actor, self._asked)

    def _hear_of(self, actor: Any, asked: Any) -> None:
        self._cluster.when_answered(
            asked, lambda place, error: self._clerk.do(partial(self._placed, actor, place, error))
        )

    def _placed(self, actor: Any, place: tuple[str, list[str]] | None, error: Exception | None) -> None:
        if actor is not self.actor:
            return
        if isinstance(error, NotYet):
            self._clerk.do(lambda: self._hear_of(actor, actor.place.remote()), _AGAIN_S)
        elif error is not None:
            self._lost = True
        else:
            self._place = place

    def await_place(self, timeout_s: float) -> None:
        """Return when it is on a node; TimeoutError, SupervisorEnded, NotYet."""
        self._place = self._cluster.answer(self._asked, timeout_s)

    def place(self) -> tuple[str, list[str]]:
        """Ray's number of its node, and the GPUs that it was dealt; OSError (EHOSTUNREACH) while there is none."""
        if self._lost or any(worker.exitcode is None for worker in self._suspects):
            self.end()
            self._renew()
        if self._place is None:
            raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
        return self._place

    def ended(self, actor: Any) -> None:
        """It was found to be gone."""
        if actor is self.actor:
            self._lost = True

    def suspect(self, worker: RayWorker) -> None:
        """It was told to end this worker: if that has not ended by the next start, both are given up."""
        self._suspects = [one for one in self._suspects if one.exitcode is None] + [worker]

    def end(self) -> None:
        self._cluster.kill(self.actor)


class _Keys(KeyExchange):
    """Of a worker whose key comes by its supervisor, to whom the answer is told."""

    def __init__(self, descriptor: int, answer: Callable[[bytes], None]) -> None:
        super().__init__(descriptor, -1, partial(os.close, descriptor))
        self._tell = answer

    def admit(self) -> None:
        self._tell(b"\n")


class RayWorker:
    """A process beside a supervisor. Calls return at once; the clerk hears of its number, its key and its end."""

    def __init__(
        self, cluster: RayCluster, clerk: Clerk, lane: LaneSupervisor, order: WorkerOrder, command: Sequence[str]
    ) -> None:
        """OSError when there is no descriptor to watch it by."""
        self._cluster, self._clerk, self._lane, self._supervisor, self._order = cluster, clerk, lane, lane.actor, order
        self.name, self.pid, self.ended_how = order.identity, 0, ""
        self.exitcode: int | None = None
        self._changing = threading.Lock()  # its end is heard on one thread and waited for on another
        self.sentinel = os.eventfd(0, os.EFD_CLOEXEC)
        self.keys: KeyExchange | None = None
        self._key = -1
        if order.server_key:
            try:
                theirs, self._key = os.pipe()
            except OSError:
                os.close(self.sentinel)
                raise
            self.keys = _Keys(theirs, self._tell)
        text = msgspec.json.encode(order) + b"\n"
        self._begun = self._supervisor.begin.remote(self.name, list(command), text, child_environment({}))
        self._hear(self._begun, self._started)
        if order.server_key:
            self._ask_for_key()
        self._ask_for_end()

    def _hear(self, call: Any, then: Callable[[Any, Exception | None], None]) -> None:
        self._cluster.when_answered(call, lambda found, error: self._clerk.do(partial(then, found, error)))

    def _started(self, pid: int | None, error: Exception | None) -> None:
        self.pid = pid or 0

    def _ask_for_key(self) -> None:
        self._hear(self._supervisor.line.remote(self.name, self._begun), self._said_key)

    def _said_key(self, line: bytes | None, error: Exception | None) -> None:
        if isinstance(error, NotYet) and self.exitcode is None:
            self._clerk.do(self._ask_for_key, _AGAIN_S)
            return
        with suppress(OSError):  # nobody may wait for it any more
            os.write(self._key, line or b"")
        os.close(self._key)

    def _tell(self, text: bytes) -> None:
        self._supervisor.tell.remote(self.name, text, self._begun)

    def _ask_for_end(self) -> None:
        self._hear(self._supervisor.wait.remote(self.name, self._begun), self._ended)

    def _ended(self, ending: Ending | None, error: Exception | None) -> None:
        if isinstance(error, NotYet):
            self._clerk.do(self._ask_for_end, _AGAIN_S)
            return
        exitcode, _, complaint = ending or (-signal.SIGKILL, b"", b"")
        if complaint:
            _last_words.note(self._order, complaint)
        elif isinstance(error, SupervisorEnded):
            self.ended_how = f"was lost with the process beside it on {self._order.node}: {error}"
            self._lane.ended(self._supervisor)
        elif error is not None:
            exitcode, self.ended_how = NOT_STARTED, f"could not be started on {self._order.node}: {error}"
        with self._changing:
            self.exitcode = exitcode
            if self.sentinel >= 0:
                os.eventfd_write(self.sentinel, 1)

    def dump_stacks(self) -> None:
        """Request the stacks by SIGUSR1."""
        if self.exitcode is None:
            self._supervisor.signal.remote(self.name, int(signal.SIGUSR1), self._begun)

    def kill(self) -> None:
        """Have its supervisor end it; where neither can be reached, the worker's own watch does."""
        if self.exitcode is None:
            self._lane.suspect(self)
            self._supervisor.signal.remote(self.name, int(signal.SIGKILL), self._begun)

    def join(self, timeout_s: float) -> bool:
        if self.sentinel >= 0:
            wait_for(self.sentinel, timeout_s)
            with self._changing:
                if self.exitcode is None:
                    return False
                os.close(self.sentinel)
                self.sentinel = -1
            if self.keys is not None:
                self.keys.close()
        return True


class RayErrand:
    """A command beside a supervisor of its own."""

    def __init__(self, cluster: RayCluster, supervisor: Any, node: str, command: Sequence[str], line: bytes) -> None:
        self._cluster, self._supervisor, self._node = cluster, supervisor, node
        self.returncode: int | None = None
        self._begun = supervisor.begin.remote(ERRAND, list(command), line, child_environment({}))
        self._end = supervisor.wait.remote(ERRAND, self._begun)

    def communicate(self, *, timeout: float) -> tuple[bytes, bytes]:
        """WorkerFailed, too, when the node is lost; UsageError when it lacks this folder, or Python."""
        try:
            self.returncode, output, complaint = self._cluster.answer(self._end, timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired(ERRAND, timeout, stderr=self._so_far()) from None
        except OSError as error:
            raise UsageError(
                f"node {self._node} cannot start the preflight ({error}): all nodes need this folder and Python at the "
                "same path"
            ) from None
        except (SupervisorEnded, NotYet) as error:
            raise WorkerFailed(f"node {self._node} gives no answer: {error}") from None
        return output, complaint

    def _so_far(self) -> bytes:
        with suppress(TimeoutError, SupervisorEnded, NotYet, OSError):
            return bytes(self._cluster.answer(self._supervisor.complaint.remote(ERRAND, self._begun), _TALK_S))
        return b""

    def kill(self) -> None:
        self._cluster.kill(self._supervisor)

    def __enter__(self) -> RayErrand:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
