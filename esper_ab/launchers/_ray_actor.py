"""A Ray actor on a node: the code that runs in it, and the coordinator's side.

Ray answers a call with the actor's result, or with an error that leaves open whether the call was carried out. After
such an error the coordinator repeats the call. To make this harmless, `write` takes a line number and `read` takes a
byte position.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from esper_ab.contracts.errors import UsageError, WorkerFailed
from esper_ab.contracts.own_packages import child_environment
from esper_ab.contracts.supervisor import Supervisor, read_end

# Ray sets these in an actor, and a worker sets its own.
_THREADS = "OMP_NUM_THREADS"
_GPUS = "CUDA_VISIBLE_DEVICES"
_AGAIN_S = 1.0  # between two calls of an actor while Ray does not know whether the actor exists
_QUIET_S = 5.0  # after this time without new output, a waiting call returns
_TALK_S = 10.0


class Actor:
    """Runs a supervisor of workers, or one command, in the coordinator's folder. Either of them ends with this process.

    Ray sends this class by value, so it uses nothing else of this package, and no torch. Methods run concurrently.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._complaint = os.memfd_create("complaint")
        self._supervisor = Supervisor(folder, self._say)
        self._supervising = ThreadPoolExecutor(1)  # the only thread on which the supervisor works
        self._done = 0
        self._said = b""
        self._changed = threading.Condition()

    def place(self) -> tuple[str, int, list[str]]:
        import ray

        context = ray.get_runtime_context()
        return context.get_node_id(), os.getpid(), list(context.get_accelerator_ids().get("GPU", []))

    def visible(self) -> str | None:
        """Return the GPUs that this process sees; None means all.

        An actor without GPUs sees the GPUs offered by its node.
        """
        return os.environ.get(_GPUS)

    def write(self, place: int, line: bytes) -> None:
        """Make the supervisor carry out line number `place`; ignore the line if it has already been carried out."""
        self._supervising.submit(self._do, place, line).result()

    def _do(self, place: int, line: bytes) -> None:
        if place == self._done:
            self._done += 1
            self._supervisor.do(json.loads(line))

    def read(self, place: int) -> bytes:
        """Return the supervisor's output from byte `place` on; b"" if there is no new output for a while."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._said) > place, _QUIET_S)
            return self._said[place:]

    def _say(self, line: bytes) -> None:
        with self._changed:
            self._said += line
            self._changed.notify_all()

    def run(self, command: Sequence[str], line: bytes, defaults: dict[str, str]) -> tuple[int, bytes, bytes]:
        """Run a command with `line` as its input; return its status, its output and the end of its standard error.

        `defaults`: environment variables that apply unless they are set on this node.
        """
        environment = defaults | {key: value for key, value in os.environ.items() if key != _THREADS}
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaint,
            cwd=self._folder,
            env=environment,
            start_new_session=True,
        )
        output, _ = child.communicate(line)
        return child.returncode, output, self.complaint()

    def complaint(self) -> bytes:
        """Return the end of the command's standard error so far."""
        return read_end(self._complaint)


class ActorEnded(ConnectionError):
    """The actor is gone, by itself or with its node; the message says how."""


class NotYet(Exception):
    """Ray cannot say now whether the actor exists."""


def answer(ray: Any, call: Any, timeout_s: float | None = None) -> Any:
    """Return the result of a call; raises TimeoutError, ActorEnded, NotYet, or the OSError that the call raised."""
    try:
        return ray.get(call, timeout=timeout_s)
    except ray.exceptions.GetTimeoutError:
        raise TimeoutError(f"Ray gave no answer within {timeout_s:.0f} s") from None
    except ray.exceptions.ActorUnavailableError as error:
        raise NotYet(in_one_line(error)) from None
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, Exception) else error
        raise OSError(getattr(cause, "errno", None) or errno.EIO, in_one_line(cause)) from None
    except ray.exceptions.RayError as error:
        raise ActorEnded(in_one_line(error)) from None


def in_one_line(error: BaseException) -> str:
    """Return the message of a Ray error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:3]) or type(error).__name__


class RaySupervisor:
    """A supervisor in an actor that has reported where it runs."""

    def __init__(self, ray: Any, actor: Any, pid: int) -> None:
        self._ray = ray
        self._actor = actor
        self.pid = pid
        self._written = 0  # lines

    def lines(self) -> Iterator[bytes]:
        place = 0
        while True:
            part: bytes = self._answer(self._actor.read, place)
            place += len(part)
            yield from part.splitlines()

    def write(self, line: bytes) -> None:
        self._answer(self._actor.write, self._written, line)
        self._written += 1

    def _answer(self, method: Any, *arguments: object) -> Any:
        while True:
            try:
                return answer(self._ray, method.remote(*arguments))
            except NotYet:
                time.sleep(_AGAIN_S)

    def kill(self) -> None:
        """Kill the actor.

        If its node cannot be reached, this has no effect; the workers are ended by their own watchdog.
        """
        self._ray.kill(self._actor)

    def dismiss(self) -> None:
        self.kill()

    def wait(self) -> None: ...


class RayErrand:
    """A command in an actor of its own."""

    def __init__(self, ray: Any, actor: Any, node: str, command: Sequence[str], line: bytes) -> None:
        self._ray = ray
        self._actor = actor
        self._node = node
        self.returncode: int | None = None
        self._end = actor.run.remote(list(command), line, child_environment({}))

    def communicate(self, *, timeout: float) -> tuple[bytes, bytes]:
        """Same as `Errand.communicate`.

        Raises WorkerFailed if the node is lost, and UsageError if this folder or Python is missing on the node.
        """
        try:
            self.returncode, output, complaint = answer(self._ray, self._end, timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired("errand", timeout, stderr=self._so_far()) from None
        except (ActorEnded, NotYet) as error:
            raise WorkerFailed(f"node {self._node} does not answer: {error}") from None
        except OSError as error:
            raise UsageError(
                f"node {self._node} cannot start the preflight ({error}): this folder and Python must be at the "
                "same path on all nodes"
            ) from None
        return output, complaint

    def _so_far(self) -> bytes:
        with suppress(OSError, NotYet):
            return bytes(answer(self._ray, self._actor.complaint.remote(), _TALK_S))
        return b""

    def kill(self) -> None:
        self._ray.kill(self._actor)

    def __enter__(self) -> RayErrand:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
