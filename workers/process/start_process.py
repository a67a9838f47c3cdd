"""The start process of a machine: imports torch once, then starts preflight and workers by torch.multiprocessing.

`… start_process DESCRIPTOR ENTRY LIST`: DESCRIPTOR is a socket for requests (esper_ab/launchers/_start_process.py);
ENTRY is the module of the workers' entry point, and LIST the name of its list of modules to be imported first: with
BEFORE_FORK_OF_GUARDS, for workers that only guard a command, that is without torch.

This process has one thread, touches no device, and runs no code of the user, so that its children can be forked. It
checks this before each fork; if it finds otherwise, it spawns them. When the coordinator closes its end of the socket,
or ends, this process ends, and the kernel kills all its children.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import multiprocessing
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, NoReturn

import msgspec

from esper_ab.contracts.guard import end_with_parent
from esper_ab.contracts.installed_code import sources_imported
from esper_ab.contracts.own_packages import import_own, without_users_main_module
from esper_ab.contracts.settings import Arithmetic
from workers.devices import pinned

_MOST_DESCRIPTORS = 8  # of a request


class StartRequest(msgspec.Struct, frozen=True):
    """A process to start: it calls `function` ("module:name") with `words` and the descriptors of the request."""

    name: str
    function: str
    words: list[str]
    environment: dict[str, str]
    folder: str
    path: list[str]  # sys.path
    blocked: list[int]  # signals


# msgspec analyses a type on first use, and two threads doing so at once crash (seen with 0.22). So do it at import.
msgspec.json.Decoder(StartRequest)


def _decoded(data: bytes) -> StartRequest:
    return msgspec.convert(json.loads(data), type=StartRequest)  # by json, because variables need not be UTF-8


class Given:
    """Descriptors for a child. A forked child has them; pickling duplicates them for a spawned one."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = list(numbers)

    def __getstate__(self) -> list[Any]:
        return [reduction.DupFd(number) for number in self.numbers]

    def __setstate__(self, duplicates: list[Any]) -> None:
        self.numbers = [duplicate.detach() for duplicate in duplicates]


class Starter:
    """Starts children on request, and reports each one's end on the socket that came with its request."""

    def __init__(self, control: socket.socket) -> None:
        """Everything that children shall share has been imported."""
        self._control = control
        self._children: dict[int, tuple[BaseProcess, socket.socket]] = {}  # by the child's pidfd
        self._own = _open_descriptors() - {control.fileno()}  # whatever is opened from now on is not for children
        self._soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))  # a child takes several descriptors here
        self._spare: int | None = None
        self._keep_spare()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> NoReturn:
        """Serve requests until the coordinator closes its end, or until an error, which ends all children, too."""
        try:
            self._serve()
        except BaseException:  # noqa: BLE001  whatever it is, the process must not stay
            traceback.print_exc()
            os._exit(1)  # exit functions would wait for the children

    def _serve(self) -> NoReturn:
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._children:
                    self._report_end(descriptor)
                elif not self._take_request():
                    os._exit(0)

    def _take_request(self) -> bool:
        """Start a child; return False if there are no more requests."""
        self._give_up_spare()  # so that the first descriptor, the socket for answers, has room
        data, descriptors, flags, _ = socket.recv_fds(self._control, 1, _MOST_DESCRIPTORS)
        if not data:
            return False
        answer, *other_descriptors = descriptors
        status = socket.socket(fileno=answer)
        try:
            if flags & socket.MSG_CTRUNC:  # there was no room for all of them
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            self._keep_spare()
            order_descriptor, *given_descriptors = other_descriptors
            self._start(
                _decoded(os.pread(order_descriptor, os.fstat(order_descriptor).st_size, 0)), given_descriptors, status
            )
        except OSError as error:
            status.send(b"failed %d" % (error.errno or 0))
            status.close()
        finally:
            for descriptor in other_descriptors:
                os.close(descriptor)
            self._keep_spare()
        return True

    def _keep_spare(self) -> None:
        """Hold a spare descriptor, which is closed when a request's socket needs one.

        Raises OSError if no descriptor is free.
        """
        if self._spare is None:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _give_up_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _start(self, request: StartRequest, given_descriptors: list[int], status: socket.socket) -> None:
        spawn_reason = reason_to_spawn()
        context = _torch_or_standard().get_context("spawn" if spawn_reason else "fork")
        forget_parent = None if spawn_reason else partial(self._forget, status, given_descriptors)
        arguments = (request, Given(given_descriptors), self._soft_limit, forget_parent)
        with without_users_main_module():
            process = context.Process(target=_become, args=arguments, name=request.name, daemon=False)
            process.start()
        assert process.pid is not None, "it has been started"
        try:
            pidfd = os.pidfd_open(process.pid)  # still its own, because nobody else waits for it
        except OSError:
            process.kill()
            process.join()
            raise
        self._children[pidfd] = process, status
        self._poll.register(pidfd, select.POLLIN)
        with suppress(OSError):  # the coordinator has given it up
            socket.send_fds(status, [f"started {process.pid} {spawn_reason}".encode()], [pidfd])

    def _forget(self, status: socket.socket, kept_descriptors: Sequence[int]) -> None:
        """In a forked child: close everything that is not for it."""
        other_sockets = [status for _, status in self._children.values()]
        for parent_socket in (self._control, status, *other_sockets):
            parent_socket.close()
        for descriptor in _open_descriptors() - self._own - set(kept_descriptors):
            os.close(descriptor)

    def _report_end(self, pidfd: int) -> None:
        process, status = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        process.join()
        with status, suppress(OSError):
            status.send(b"ended %d" % (process.exitcode or 0))
        process.close()


def reason_to_spawn() -> str:
    """Return why a child of this process must not be forked; "" if it can be."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208  their number
    if threads > 1:
        word = "thread" if threads == 2 else "threads"
        return f"importing its modules has left {threads - 1} more {word} running"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "importing its modules has initialised CUDA"
    return ""


def _torch_or_standard() -> Any:
    """Return torch.multiprocessing, or what it extends for workers that need no torch."""
    return sys.modules.get("torch.multiprocessing", multiprocessing)


def _open_descriptors() -> set[int]:
    """Return the descriptors of this process that are open now."""
    with os.scandir("/proc/self/fd") as entries:
        listed_numbers = {int(entry.name) for entry in entries}
    return {number for number in listed_numbers if _is_open(number)}  # without the one of the listing itself


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _become(
    request: StartRequest, given_descriptors: Given, soft_limit: int, forget_parent: Callable[[], None] | None
) -> NoReturn:
    """Do the request in a new process, and end it as Python ends a program.

    `forget_parent`: closes what a forked process has inherited from the start process; None for a spawned one.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a child"
    assert parent.pid is not None, "it has been started"
    end_with_parent(parent.pid)
    if forget_parent is not None:
        forget_parent()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.environ.clear()
    os.environ.update(request.environment)
    sys.modules["__main__"] = ModuleType("__main__")
    sys.path[:] = request.path
    _seed_numpy()
    status = 0
    try:
        os.chdir(request.folder)
        signal.pthread_sigmask(signal.SIG_SETMASK, request.blocked)
        module, _, function = request.function.partition(":")
        getattr(import_own(module), function)(*request.words, *given_descriptors.numbers)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  whatever users' code raises
        sys.stderr.write(f"Process {request.name}:\n{traceback.format_exc()}")
        status = 1
    _exit(status)


def _seed_numpy() -> None:
    """Give this process other random numbers than its siblings where users' code draws from numpy's own generator."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def _exit(status: int) -> NoReturn:
    """End as a program ends: wait for threads, call exit functions, and flush what users' code has left open.

    multiprocessing would skip that in a forked child.
    """
    ctypes.pythonapi.Py_Exit(status)
    raise AssertionError("does not return")


def main(descriptor: str, entry: str, modules: str) -> NoReturn:
    """Import what workers need, then serve requests."""
    control = socket.socket(fileno=int(descriptor))
    # One thread, so that a library makes no others when it is imported, and no GPU to be seen.
    os.environ.update(pinned.variables((), Arithmetic(threads=1)))
    gc.disable()  # imports leave almost no garbage, and looking for it takes a tenth of their time
    with suppress(Exception):  # a child reports it, which imports them again
        for module in getattr(import_own(entry), modules, ()):
            import_own(module)
    sources_imported()  # the children have this code, even if files are edited before they start
    gc.freeze()
    gc.enable()
    Starter(control).serve()


if __name__ == "__main__":
    # As the module that a spawned child imports: what is pickled for it has the name of its module.
    import_own("workers.process.start_process").main(*sys.argv[1:])
