"""What a worker sets up for its whole process before torch is imported. Knows no message and no torch."""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import wait
from pathlib import Path

from esper_ab.contracts.messages import Lane
from esper_ab.contracts.settings import Arithmetic

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_ORPHANED = 70
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # mallopt(3)
_LARGEST_FROM_HEAP = 32 << 20  # bytes; glibc takes no more
_KEPT_BYTES = 1 << 30


def redirect_output(log: Path) -> None:
    """Everything written to stdout and stderr, by Python or by a library, goes to the end of `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.close(descriptor)


def set_environment(lane: Lane, arithmetic: Arithmetic) -> None:
    """Pin devices and threads. They are read when torch is imported and when it first touches CUDA, never after."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(uuid for uuid in lane.uuids if uuid)
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(arithmetic.threads)


def keep_freed_memory() -> None:
    """Let the allocator keep what training frees, instead of handing it back and faulting it in again at every step.

    Page faults of activations were up to half of a training step. Where the C library has no mallopt nothing is done:
    it decides speed, never a result.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_FROM_HEAP)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def obey_the_coordinator_only() -> None:
    """What ends everybody is the coordinator's business; SIGUSR1 is its way to ask where this process is stuck."""
    for sent_to_everybody in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent_to_everybody, signal.SIG_IGN)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def die_with_parent() -> None:
    """End this process as soon as its parent has ended, whatever it is doing.

    Two ways, because each has a hole. A thread that watches the parent does not run while the process is stopped or C
    code keeps the interpreter's lock. The kernel's signal reaches both, but only on Linux, and it follows the thread
    that spawned: that is the coordinator's only one, which lives as long as the experiment.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    threading.Thread(target=_watch, args=(parent.sentinel,), name="parent watch", daemon=True).start()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent.pid:  # it had ended before the kernel knew
            os._exit(_ORPHANED)


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os._exit(_ORPHANED)
