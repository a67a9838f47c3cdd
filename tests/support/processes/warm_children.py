"""Fork children that import torch from a process that has imported it: milliseconds instead of two seconds.

`python -P own_packages.py PARENT MODULE …` still runs in a process of its own, with its own descriptors, variables and
working directory. Two things differ: variables that are read when Python or torch is loaded have no effect, and the
parent is a process that waits for the child. Tests that depend on these two things start children as usual.
"""

import atexit
import ctypes
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
from pathlib import Path

from esper_ab.contracts import own_packages
from support.processes import children

_MODULES = (
    "workers.commands.describe",
    "workers.commands.evaluate",
    "workers.kinds.growth.commands.heuristic",
    "workers.kinds.growth.commands.rewards",
    "workers.kinds.trainer.commands.try_trainer",
)
_PROGRAM = ["-P", own_packages.__file__]
_MOST_BYTES = 1 << 18
_PDEATHSIG = 1
_STARTING = threading.Lock()
_address = ""  # of the server; its forks inherit it
# Variables that are read at start-up, with their values then; a child that needs other values is not forked.
_variables_at_import = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONHASHSEED", "LD_PRELOAD")}


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
                os.posix_spawn(sys.executable, command, children.environment())
    return _address


class Popen(subprocess.Popen):
    """A Popen that forks its child from the warm process if the child runs one of _MODULES."""

    _ended: socket.socket | None = None

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *other_arguments):
        environment = dict(os.environ if env is None else env)
        is_ours = list(args[1:3]) == _PROGRAM and args[4] in _MODULES
        if not is_ours or any(environment.get(name) != value for name, value in _variables_at_import.items()):
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *other_arguments)
            return
        pipes = other_arguments[3:9]
        fds = [end if end >= 0 else number for number, end in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._ended = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ended.connect(f"\0{_server()}")
        request = json.dumps([args[2], args[4:], environment, str(cwd or Path.cwd())]).encode()
        assert len(request) < _MOST_BYTES
        socket.send_fds(self._ended, [request], fds)
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


def _run_program(path: str, arguments: list[str], env: dict[str, str], folder: str, fds: list[int]) -> int:
    """Run the program in this process; return its exit status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    _variables_at_import.update((name, env.get(name)) for name in _variables_at_import)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(3, max(*fds, 3) + 1)
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
            request, fds, *_ = socket.recv_fds(connection, _MOST_BYTES, 3)
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

    warm_children._address = sys.argv[1]
    for module in _MODULES:
        importlib.import_module(module)
        del sys.modules[module]  # each child executes its own anew
    subprocess.Popen = warm_children.Popen
    warm_children._serve(*(socket.socket(fileno=int(fd)) for fd in sys.argv[2:]))
