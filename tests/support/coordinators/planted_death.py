"""Kill a process at a chosen moment of a chosen call. Product code does not use this module.

The environment variable NEMESIS holds {identity: Death} as JSON. A process that calls `install` counts its system calls
of the kind in its Death. In the n-th of these calls it writes a line to the file in NEMESIS_LOG and ends itself.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import threading
from pathlib import Path

import msgspec
import zmq

from esper_ab.contracts.worker_order import WorkerOrder

VARIABLE = "NEMESIS"
LOG_VARIABLE = "NEMESIS_LOG"
PLACES = ("journal write", "journal sync", "checkpoint write", "checkpoint sync", "checkpoint rename", "send")
# workers that save a policy also have "policy write", "policy sync", "policy rename"
_WRITE = os.write
_SYNC = (os.fsync, os.fdatasync)


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """A death in the n-th call at `place`: before, after or in the middle of it, by a signal or a hang."""

    place: str
    n: int = 1
    moment: str = "before"
    cause: str = "SIGKILL"


def planted(deaths: dict[str, Death], log: Path) -> dict[str, str]:
    """Return the environment variables that plant these deaths in a process and its children."""
    return {VARIABLE: msgspec.json.encode(deaths).decode(), LOG_VARIABLE: str(log)}


def struck(log: Path) -> list[tuple[str, Death]]:
    """Return (identity, death) of every process that has died by this plan, in order."""
    lines = log.read_bytes().splitlines() if log.exists() else []
    return [msgspec.json.decode(line, type=tuple[str, Death]) for line in lines]


def worker(order: WorkerOrder) -> None:
    """Entry point of a fake worker with a planted death."""
    from support.workers import fake_worker

    install(order.identity)
    fake_worker.main(order)


def install(identity: str) -> None:
    """Plant the death of `identity` into this process, if there is one."""
    deaths = msgspec.json.decode(os.environ.get(VARIABLE, "{}"), type=dict[str, Death])
    if identity in deaths:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _Planted(identity, deaths[identity]).wrap()


class _Planted:
    def __init__(self, identity: str, death: Death) -> None:
        self._identity = identity
        self._death = death
        self._calls = 0
        self._process = os.getpid()  # forked children have deaths of their own

    def wrap(self) -> None:
        os.write = self._around(_WRITE, lambda descriptor, data: f"{_kind(descriptor)} write", _half_written)
        for call in _SYNC:
            setattr(os, call.__name__, self._around(call, lambda descriptor: f"{_kind(descriptor)} sync"))
        plain_replace = os.replace
        os.replace = self._around(plain_replace, lambda _, target: f"{_kind_of(str(target))} rename")
        send = zmq.Socket.send
        zmq.Socket.send = self._around(send, lambda *args, **options: "send")

    def _around(self, call, get_place, write_half=None):
        def wrapped(*args, **options):
            moment = self._due(get_place(*args, **options))
            if moment == "before":
                self._die()
            if moment == "middle":
                write_half(*args)
                self._die()
            result = call(*args, **options)
            if moment:
                self._die()
            return result

        return wrapped

    def _due(self, place: str) -> str:
        """Return the moment of this call at which to die; "" for none."""
        if place != self._death.place or os.getpid() != self._process:
            return ""
        self._calls += 1
        return self._death.moment if self._calls == self._death.n else ""

    def _die(self) -> None:
        log = os.open(os.environ[LOG_VARIABLE], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        _WRITE(log, msgspec.json.encode((self._identity, self._death)) + b"\n")
        os.close(log)
        if self._death.cause in _HANGS:
            _HANGS[self._death.cause]()
        os.kill(os.getpid(), signal.Signals[self._death.cause])
        while self._death.cause != "SIGSTOP":
            signal.pause()


def _busy() -> None:
    while True:
        pass


def _no_thread_gets_a_turn() -> None:
    """Hold the interpreter's lock practically forever: the regular expression backtracks exponentially."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def _deadlock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


_HANGS = {"busy loop": _busy, "interpreter locked": _no_thread_gets_a_turn, "deadlock": _deadlock}


def _kind(descriptor: int) -> str:
    return _kind_of(str(Path(f"/proc/self/fd/{descriptor}").readlink()))


def _kind_of(path: str) -> str:
    """Return the kind of the file at a path; a folder has the kind of the files in it."""
    for folder, kind in (("/checkpoints/", "checkpoint"), ("/policies/", "policy")):
        if folder in path:
            return kind
    return "journal" if path.endswith("/events.jsonl") else "other"


def _half_written(descriptor: int, data: bytes) -> None:
    _WRITE(descriptor, bytes(data)[: len(data) // 2])
