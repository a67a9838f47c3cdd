"""`… _node_supervisor ENTRY`: the supervisor of all workers of one node. It starts them and says what becomes of them.

It talks by its standard streams (`_node_talk`). The end of its input is the end of the coordinator: it ends, and the
kernel ends its workers.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from pathlib import Path

import msgspec

from esper_ab.contracts.own_packages import ORPHANED, child_command
from esper_ab.launchers._node_talk import Admit, Begin, FromSupervisor, KeySaid, Over, Signal, ToSupervisor, line
from esper_ab.launchers._supervisor import NOT_STARTED, Supervisor

_TICK_S, _GAP_S = 1.0, 5.0
_SPEAKING = threading.Lock()
_decode = msgspec.json.Decoder(ToSupervisor).decode


class Standstill:
    """Tells whether this process was stopped, alone or with its machine: its ticks have a gap then."""

    def __init__(self, tick_s: float = _TICK_S, gap_s: float = _GAP_S) -> None:
        self._tick_s, self._gap_s = tick_s, gap_s
        self._ticked, self._over = time.monotonic(), -math.inf
        threading.Thread(target=self._tick, name="standstill", daemon=True).start()

    def _tick(self) -> None:
        while True:
            time.sleep(self._tick_s)
            now = time.monotonic()
            if now - self._ticked > self._gap_s:
                self._over = now
            self._ticked = now

    def is_over_just_now(self) -> bool:
        """Whether this process stood still until less than `gap_s` ago, so that what it reads may date from before."""
        now = time.monotonic()
        return now - self._ticked > self._gap_s or now - self._over < self._gap_s


def main(entry: str) -> None:
    """Be the supervisor."""
    supervisor, standstill = Supervisor(str(Path.cwd())), Standstill()
    command = child_command("esper_ab.launchers._on_node", entry, elsewhere=True)
    for text in sys.stdin.buffer:
        match _decode(text):
            case Begin(name, order):
                _begin(supervisor, name, command, order)
            case Admit(name):
                supervisor.tell(name, b"\n", None)
            case Signal(name, number):
                # Stacks that were asked for before a standstill are of workers that were given up in it: they may not
                # write into logs any more.
                if number != signal.SIGUSR1 or not standstill.is_over_just_now():
                    supervisor.signal(name, number, None)
    os._exit(ORPHANED)


def _begin(supervisor: Supervisor, name: str, command: list[str], order: str) -> None:
    try:
        supervisor.begin(name, command, order.encode() + b"\n", {})
    except OSError as error:
        _say(Over(name, NOT_STARTED, f"the worker could not be started: {error}\n".encode()))
        return
    threading.Thread(target=_follow, args=(supervisor, name), daemon=True).start()


def _follow(supervisor: Supervisor, name: str) -> None:
    """Say what the worker says, and its end."""
    _say(KeySaid(name, supervisor.line(name, None).decode(errors="replace").rstrip("\n")))
    status, _, complaint = supervisor.wait(name, None)
    _say(Over(name, status, complaint))


def _say(message: FromSupervisor) -> None:
    data = line(message)
    with _SPEAKING:
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
