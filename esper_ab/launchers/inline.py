"""Launcher of workers as threads, for tests and debuggers. Threads cannot be killed, and share torch's settings."""

from __future__ import annotations

import errno
import faulthandler
import os
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.files_below import open_below
from esper_ab.contracts.own_packages import ForeignPackage, add_working_directory, claim
from esper_ab.contracts.process_exit import PROCESS_EXIT
from esper_ab.contracts.worker_order import Lane, WorkerOrder
from esper_ab.launchers import KeyExchange, Launcher, LauncherFactory, Transport
from esper_ab.launchers._entry import call


class InlineWorker:
    """A worker on a daemon thread, which writes to its sentinel when it ends."""

    ended_how = ""

    def __init__(self, order: WorkerOrder, entry: str) -> None:
        self._order = order
        self._entry = entry
        self.name = order.identity
        self.pid = os.getpid()
        self.exitcode: int | None = None
        self.sentinel = os.eventfd(0, os.EFD_CLOEXEC)
        self.keys: KeyExchange | None = None
        self._theirs: socket.socket | None = None
        try:
            if order.server_key:
                our_socket, self._theirs = socket.socketpair()
                self.keys = KeyExchange(our_socket)
            self._thread = threading.Thread(target=self._run, name=order.identity, daemon=True)
            self._thread.start()
        except (OSError, RuntimeError) as error:
            os.close(self.sentinel)
            if self.keys and self._theirs:
                self.keys.close()
                self._theirs.close()
            if isinstance(error, OSError):
                raise
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None

    def _run(self) -> None:
        self._folder = _identity(self._order.experiment_dir)
        try:
            call(self._entry, self._order, self._theirs)
            self.exitcode = 0
        except SystemExit:  # the log says why
            self.exitcode = 1
        except BaseException:  # noqa: BLE001  any exception ends the worker, as in a process
            self.exitcode = 1
            if _identity(self._order.experiment_dir) == self._folder:  # it has not been moved or removed meanwhile
                with suppress(OSError), self._log() as log:
                    traceback.print_exc(file=log)
        finally:
            os.eventfd_write(self.sentinel, 1)

    def dump_stacks(self) -> None:
        """Write the stacks of all threads of this process, including the worker's, to its log, if that is possible."""
        with suppress(OSError), self._log() as log:
            faulthandler.dump_traceback(file=log, all_threads=True)

    def _log(self) -> TextIO:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.fdopen(open_below(Path(self._order.experiment_dir), self._order.log_file, flags), "a")

    def kill(self) -> None:
        """Abandon the thread; as a daemon it ends with this process at the latest."""
        PROCESS_EXIT.abandoned.append(self._thread)

    def join(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        if self.sentinel >= 0:
            os.close(self.sentinel)
            self.sentinel = -1
        return True


def _identity(folder: str) -> tuple[int, int] | None:
    """Return what tells a folder from another one at its path; None if there is none."""
    try:
        status = Path(folder).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class InlineLauncher(Launcher):
    """Starts each worker as a thread."""

    name = "inline"
    threads = True
    descriptors = 11  # an eventfd, both ends of a connection, and those of a libzmq context

    entry = "workers.process.entry:main_in_thread"

    def __init__(self, entry: str = "", transport: Transport | None = None) -> None:
        """Raises UsageError if this process has imported another package `workers` than that of the entry point."""
        super().__init__(entry, transport)
        try:
            claim(self.entry.partition(":")[0])
        except ForeignPackage as error:
            raise UsageError(f"launcher inline: {error}, or use launcher local") from None
        self._directory = ""  # the current directory when workers were started; they share it with this process
        self._is_importable = False  # whether this launcher has made that directory importable

    def check_lanes(self, lanes: Sequence[Lane]) -> None:
        """Refuse GPUs, because torch fixes the choice of GPUs and their arithmetic once per process."""
        if gpus := [lane.name for lane in lanes if any(lane.uuids)]:
            raise UsageError(
                f"launcher inline on {gpus[0]}: threads share one view of the GPUs, so no thread could have its own "
                "GPU; use ",
                SettingName("launcher", "local"),
                " or ",
                SettingName("devices", ("cpu",)),
            )
        super().check_lanes(lanes)

    def reserve(self, lanes: Sequence[Lane]) -> None:
        """Remember the current directory, because users' code in a thread may change it, and import from it."""
        if not self._directory:
            self._directory = str(Path.cwd())
            self._is_importable = self._directory not in sys.path
            add_working_directory()

    def release(self) -> None:
        """Change back to the directory remembered by `reserve`, because later paths may be relative to it."""
        if self._directory:
            os.chdir(self._directory)
        if self._is_importable and self._directory in sys.path:
            sys.path.remove(self._directory)
        self._directory = ""

    def start(self, order: WorkerOrder) -> InlineWorker:
        PROCESS_EXIT.needs_teardown = True
        return InlineWorker(order, self.entry)


LAUNCHER: LauncherFactory = InlineLauncher
