"""Sets up a worker's process before torch is imported: output, environment, memory and signals. Imports no torch."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from esper_ab.contracts.files_below import open_below
from esper_ab.contracts.guard import end_with_parent
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.worker_order import Lane
from workers.devices import pinned

_STDERR = 2  # a descriptor, whatever it leads to
_M_TRIM_THRESHOLD = -1  # mallopt(3)
_M_MMAP_THRESHOLD = -3  # mallopt(3)
# By the suffixes and prefixes that builds of OpenBLAS have; numpy brings a build with both.
_SET_OPENBLAS_THREADS = (
    "openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "scipy_openblas_set_num_threads64_",
)
_LARGEST_FROM_HEAP = 32 << 20  # bytes; the maximum of glibc
_KEPT_BYTES = 1 << 30


def redirect_output(experiment_dir: Path, log_file: str) -> None:
    """Append everything that Python or a library writes to stdout or stderr to `log_file` below `experiment_dir`."""
    descriptor = open_below(experiment_dir, log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.close(descriptor)


def set_environment(lane: Lane, arithmetic: Arithmetic) -> None:
    """Pin devices and threads by environment variables, which torch reads only at import and at first use of CUDA."""
    os.environ.update(pinned.variables(lane.uuids, arithmetic))


def set_threads_of_loaded_libraries(threads: int) -> None:
    """Set the number of threads of each OpenBLAS in this process: a forked one has loaded it before it had variables.

    torch has a function of its own for this (`by_torch.pin`), and libraries that are loaded later read the variables.
    """
    for path in _loaded("openblas"):
        library = ctypes.CDLL(path)
        for name in _SET_OPENBLAS_THREADS:
            if (set_threads := getattr(library, name, None)) is not None:
                set_threads(threads)


def _loaded(name: str) -> set[str]:
    """Return the paths of the shared libraries of this process that have `name` in their own name."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if name in line and ".so" in line}
    return {path for path in paths if name in Path(path).name}


def keep_freed_memory() -> None:
    """Make the allocator keep the memory that training frees, instead of faulting it in again every step.

    Page faults of activations took up to half of a training step. The setting affects speed, never a result, and is
    skipped if the C library has no mallopt.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_FROM_HEAP)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def ignore_signals() -> None:
    """Do nothing on SIGINT, SIGTERM and SIGHUP, whoever sends them; on SIGUSR1, dump all stacks to the log.

    Only the coordinator ends workers; it uses SIGUSR1 to find where this process is stuck.
    """
    for sent_to_everybody in (signal.SIGINT, signal.SIGHUP):
        signal.signal(sent_to_everybody, signal.SIG_IGN)
    # Handled instead of ignored, because ignoring is inherited: users' code ends its helper processes by SIGTERM.
    signal.signal(signal.SIGTERM, _do_nothing)
    signal.siginterrupt(signal.SIGTERM, False)
    _forked_children_obey_sigterm()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, file=_STDERR, all_threads=True)


def _forked_children_obey_sigterm() -> None:
    """Give forked children the default for SIGTERM. A signal that arrives before that waits, because it is blocked."""
    masks = threading.local()

    def block() -> None:
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def restore() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

    def obey() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        restore()

    os.register_at_fork(before=block, after_in_parent=restore, after_in_child=obey)


def _do_nothing(number: int, frame: FrameType | None) -> None: ...


def forked_children_end_with_it() -> None:
    """Make sure that processes which user code forks from now on do not outlive this one: the kernel kills them.

    This covers only forks by the main thread, because the kernel ties the signal to the forking thread, and another
    thread may end long before the process. Programs started with exec are not covered. A child that returns from a
    reward function would continue as a second worker; `Link` ends such a child.
    """
    process = os.getpid()
    main_thread = threading.get_native_id()
    by_main = False

    def note() -> None:
        nonlocal by_main
        by_main = threading.get_native_id() == main_thread

    def end() -> None:
        if by_main:
            end_with_parent(process)

    os.register_at_fork(before=note, after_in_child=end)


def end() -> NoReturn:
    """End this process after its work, but skip Python's clean-up of torch, which takes half a second.

    Functions registered with atexit are called. Files that other code has open are not flushed.
    """
    atexit._run_exitfuncs()
    with suppress(OSError):  # the log may be on a full disk
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    os._exit(0)
