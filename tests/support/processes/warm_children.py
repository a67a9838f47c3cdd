"""Fork children that import torch from a process that has imported it: milliseconds instead of two seconds.

`python -P own_packages.py PARENT MODULE …` still runs in a process of its own, with its own descriptors, variables,
signal mask and working directory. Two things differ: variables that are read when Python or torch is loaded have no
effect, and the parent is a process that waits for the child. Tests that depend on these two things start children as
usual.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from esper_ab.contracts import own_packages
from esper_ab.contracts.settings import Arithmetic
from support.processes import children
from workers.devices import pinned

_MODULES = (
    "workers.commands.describe",
    "workers.commands.evaluate",
    "workers.kinds.growth.commands.heuristic",
    "workers.kinds.growth.commands.rewards",
    "workers.kinds.trainer.commands.try_trainer",
)
_START_PROCESS = "workers.process.start_process"
_WITH_TORCH = ["workers.process.entry", "BEFORE_FORK"]  # arguments of a start process that imports torch
_PROGRAM = ["-P", own_packages.__file__]
_MOST_BYTES = 1 << 18
_MOST_FDS = 16
_PDEATHSIG = 1
_STARTING = threading.Lock()
_address = ""  # of the server; its forks inherit it
# Variables that are read at start-up, with their values then; a child that needs other values is not forked.
_variables_at_import = {name: os.environ.get(name) for name in ("PYTHONHASHSEED", "LD_PRELOAD")}
# Nor is one that finds these in a folder of PYTHONPATH, which otherwise only changes sys.path.
_IMPORTED_AT_START = ("sitecustomize.py", "usercustomize.py", "esper_ab", "workers", "torch", "numpy")


def _server() -> str:
    """Return the address of the process that has imported torch; the first call starts it.

    It ends when this process ends.
    """
    global _address
    with _STARTING:
        if not _address:
            _address = f"esper_ab-warm-{os.getpid()}"
            (parent_socket, child_socket) = socket.socketpair()
            parent_socket.detach()  # closed by the end of this process alone
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, child_socket:
                listener.bind(f"\0{_address}")
                listener.listen(32)
                for end in (listener, child_socket):
                    end.set_inheritable(True)
                command = [
                    sys.executable,
                    "-P",
                    "-m",
                    "support.processes.warm_children",
                    _address,
                    str(listener.fileno()),
                    str(child_socket.fileno()),
                ]
                env = children.environment(**pinned.variables((), Arithmetic(threads=1)))  # as for the start process
                os.posix_spawn(sys.executable, command, env)
    return _address


def _can_be_forked(args: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Tell whether the child runs one of our programs, and its start depends on no variable."""
    if list(args[1:3]) != _PROGRAM:
        return False
    if args[4] not in _MODULES and (args[4] != _START_PROCESS or list(args[-2:]) != _WITH_TORCH):
        return False
    if any(environment.get(name) != value for name, value in _variables_at_import.items()):
        return False
    return not any((folder / name).exists() for folder in _python_path(environment) for name in _IMPORTED_AT_START)


def _python_path(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders of PYTHONPATH, without our own."""
    folders = [Path(name) for name in environment.get("PYTHONPATH", "").split(os.pathsep) if name]
    return [folder for folder in folders if folder not in (children.TESTS, children.TESTS.parent)]


class Popen(subprocess.Popen):
    """A Popen that forks its child from the warm process if the child runs one of _MODULES."""

    _ended: socket.socket | None = None

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *other_arguments):
        environment = dict(os.environ if env is None else env)
        if not _can_be_forked(args, environment):
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *other_arguments)
            return
        pipes = other_arguments[3:9]
        fds = {number: end if end >= 0 else number for number, end in enumerate((pipes[0], pipes[3], pipes[5]))}
        fds |= {fd: fd for fd in pass_fds}
        blocked = sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        self._ended = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ended.connect(f"\0{_server()}")
        request = json.dumps([args[2], args[4:], environment, str(cwd or Path.cwd()), blocked, list(fds)]).encode()
        assert len(request) < _MOST_BYTES
        socket.send_fds(self._ended, [request], list(fds.values()))
        self.pid = int(self._ended.recv(64))
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._ended is None:
            return super()._try_wait(wait_flags)
        if wait_flags & os.WNOHANG and not select.select([self._ended], [], [], 0)[0]:
            return 0, 0
        status = self._ended.recv(64)
        self._ended.close()
        return self.pid, int(status or signal.SIGKILL)

    def _internal_poll(self, *args: object, **options: object) -> int | None:
        if self._ended is None:
            return super()._internal_poll(*args, **options)
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def _fork() -> int:
    """Fork like os.fork, but the child is killed when its parent ends."""
    parent = os.getpid()
    if not (pid := os.fork()):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    return pid


def _take_descriptors(fds: list[int], numbers: list[int]) -> None:
    """Give this process the descriptors `fds` under these numbers, and no others."""
    above = max(*numbers, *fds) + 1
    copies = [fcntl.fcntl(fd, fcntl.F_DUPFD, above) for fd in fds]
    os.closerange(3, above)
    for copy, number in zip(copies, numbers, strict=True):
        os.dup2(copy, number)
        os.close(copy)


def _run_program(
    path: str,
    arguments: list[str],
    env: dict[str, str],
    folder: str,
    blocked: list[int],
    numbers: list[int],
    fds: list[int],
) -> int:
    """Run the program in this process; return its exit status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [str(path) for path in _python_path(env) if str(path) not in sys.path]
    _take_descriptors(fds, numbers)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    sys.argv = [path, "0", *arguments]
    status = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001  whatever a user's code raises
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status


def _serve(listener: socket.socket, parent_socket: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while parent_socket not in (ready_sockets := select.select([listener, parent_socket], [], [])[0]):
        assert ready_sockets
        connection = listener.accept()[0]
        if not _fork():
            parent_socket.close()
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            request, fds, *_ = socket.recv_fds(connection, _MOST_BYTES, _MOST_FDS)
            if not (pid := _fork()):
                connection.close()
                os._exit(_run_program(*json.loads(request), fds) & 0xFF)
            for fd in fds:
                os.close(fd)
            connection.send(str(pid).encode())
            connection.send(str(os.waitpid(pid, 0)[1]).encode())
            os._exit(0)
        connection.close()


if __name__ == "__main__":
    from support.processes import warm_children
    from workers.process import entry

    gc.disable()
    warm_children._address = sys.argv[1]
    for module in entry.BEFORE_FORK:
        importlib.import_module(module)
    for module in (*_MODULES, _START_PROCESS):
        importlib.import_module(module)
        del sys.modules[module]  # each child executes its own anew
    gc.freeze()
    gc.enable()
    subprocess.Popen = warm_children.Popen
    warm_children._serve(*(socket.socket(fileno=int(fd)) for fd in sys.argv[2:]))
