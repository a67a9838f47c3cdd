"""Runs work in a forked child with limits of time and memory, isolated from its parent."""

import ctypes
import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_MEMORY_BYTES = 6 << 30  # one look at the refusals lists what hundreds of tests enter
_FAILED = b"!"
_STALLED_S = 300.0  # by the clock, for a child that waits for ever


class TimedOutError(Exception):
    """The child was killed because it ran too long."""


class CrashedError(Exception):
    """The child ended without an answer; includes the child's traceback if there is one."""


def in_child(work: Callable[[], Any], cpu_s: float) -> Any:
    """Return the JSON-serialisable result of `work`, run in a child."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(work, sender, cpu_s)
    os.close(sender)
    try:
        answer = _read(receiver, max(_STALLED_S, cpu_s))
    finally:
        os.close(receiver)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # its children, too
        _, status = os.waitpid(pid, 0)
    if answer is None or (not answer and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        raise TimedOutError
    if not answer or answer.startswith(_FAILED):
        raise CrashedError(answer.removeprefix(_FAILED).decode())
    return json.loads(answer)


def _answer(work: Callable[[], Any], sender: int, cpu_s: float) -> None:
    """Run the child from start to exit."""
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            answer = json.dumps(work()).encode()
        except BaseException:  # noqa: BLE001 - whatever it was, the parent is told
            answer = _FAILED + traceback.format_exc().encode()
        while answer:
            answer = answer[os.write(sender, answer) :]
    finally:
        os._exit(0)


def _read(receiver: int, wall_s: float) -> bytes | None:
    """Return everything the child writes until it closes the pipe; None on timeout."""
    deadline = time.monotonic() + wall_s
    answer = b""
    while (seconds_left := deadline - time.monotonic()) > 0:
        if select.select([receiver], [], [], seconds_left)[0]:
            piece = os.read(receiver, 1 << 16)
            if not piece:
                return answer
            answer += piece
    return None
