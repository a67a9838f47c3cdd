"""What a supervisor does, in an actor of Ray or a step of Slurm: it starts commands, and says what becomes of them.

An actor of Ray gets this class by value and needs nothing of this package, and no torch. There its methods run side by
side, in any order, so whoever calls one that needs a command passes what `begin` returned, which Ray waits for.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO

_THREADS, _GPUS = "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"  # that Ray sets in an actor; a worker sets its own
ERRAND = "errand"  # name of a command that is no worker
_OUTPUT_BYTES, _COMPLAINT_BYTES = 16 << 20, 64 << 10  # that are kept of an output: the last ones
NOT_STARTED = 126  # status of a worker whose process could not be started, as a shell has it
_REST_S = 1.0  # for what a command has written and a child of it may keep open


# How a command ended: its status as subprocess has it, its output, the end of its standard error. A plain tuple, which
# the other side can read whatever this process can import.
Ending = tuple[int, bytes, bytes]


class Stream:
    """One output of a command, read as it comes."""

    def __init__(self, pipe: IO[bytes], kept_bytes: int) -> None:
        self._pipe, self._kept_bytes = pipe, kept_bytes
        self._changed = threading.Condition()
        self._text, self._whole = b"", False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._pipe:
            while part := os.read(self._pipe.fileno(), 1 << 16):
                with self._changed:
                    self._text = (self._text + part)[-self._kept_bytes :]
                    self._changed.notify_all()
        with self._changed:
            self._whole = True
            self._changed.notify_all()

    def so_far(self) -> bytes:
        with self._changed:
            return self._text

    def line(self) -> bytes:
        """The first line, or all where it ends without one."""
        with self._changed:
            self._changed.wait_for(lambda: self._whole or b"\n" in self._text)
            head, newline, _ = self._text.partition(b"\n")
            return head + newline

    def rest(self) -> bytes:
        """What was kept of it, once its writer has ended; waits a second at most for what is still coming."""
        self._thread.join(_REST_S)
        return self.so_far()


class _Child:
    """A command that was started."""

    def __init__(self, command: Sequence[str], text: bytes, folder: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment,
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None, "a pipe"
        assert self.process.stderr is not None, "a pipe"
        self.output = Stream(self.process.stdout, _OUTPUT_BYTES)
        self.complaint = Stream(self.process.stderr, _COMPLAINT_BYTES)
        self.tell(text)

    def tell(self, text: bytes) -> None:
        try:
            if self.process.stdin is not None:
                self.process.stdin.write(text)
                self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended, which shows by its status

    def wait(self) -> Ending:
        status = self.process.wait()
        if self.process.stdin is not None:
            with suppress(OSError):  # what it has not read
                self.process.stdin.close()
        return status, self.output.rest(), self.complaint.rest()


class Supervisor:
    """Starts commands in the coordinator's folder; they end with this process, whatever becomes of it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._starter = ThreadPoolExecutor(1)  # the kernel ends children with the thread that started them
        self._children: dict[str, _Child] = {}

    def place(self) -> tuple[str, list[str]]:
        """The number of this node at Ray, and the numbers or UUIDs of the GPUs that Ray has dealt to this actor."""
        import ray

        context = ray.get_runtime_context()
        return context.get_node_id(), list(context.get_accelerator_ids().get("GPU", []))

    def visible(self) -> str | None:
        """Which GPUs this process sees; None: all. Of an actor without GPUs those that its node offers."""
        return os.environ.get(_GPUS)

    def begin(self, name: str, command: Sequence[str], text: bytes, defaults: dict[str, str]) -> int:
        """Start `command`, which is called `name` from now on, with `text` as its first input; the process's number.

        ERRAND sees the GPUs that this process sees. `defaults` stand in its environment unless this node has others.
        """
        left_out = (_THREADS,) if name == ERRAND else (_THREADS, _GPUS)
        environment = defaults | {key: value for key, value in os.environ.items() if key not in left_out}
        child = self._starter.submit(_Child, command, text, self._folder, environment).result()
        self._children[name] = child
        return child.process.pid

    def line(self, name: str, _begun: object) -> bytes:
        return self._children[name].output.line()

    def tell(self, name: str, text: bytes, _begun: object) -> None:
        """Write to its input; nothing where it could not be started, which its caller has yet to hear."""
        if name in self._children:
            self._children[name].tell(text)

    def complaint(self, name: str, _begun: object) -> bytes:
        """What it has written to standard error so far."""
        return self._children[name].complaint.so_far()

    def signal(self, name: str, number: int, _begun: object) -> None:
        """Send it a signal; nothing once it has ended, and where it could not be started."""
        if name in self._children:
            self._children[name].process.send_signal(number)

    def wait(self, name: str, _begun: object) -> Ending:
        """Its end. May be asked again by whoever did not get the answer."""
        return self._children[name].wait()
