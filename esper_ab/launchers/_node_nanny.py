"""`… _node_nanny ENTRY`: the nanny of all workers of one node. It starts them and says what becomes of them.

It talks by its standard streams (`_node_talk`). The end of its input is the end of the coordinator: it ends, and the
kernel ends its workers.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import msgspec

from esper_ab.contracts.own_packages import ORPHANED, child_command
from esper_ab.launchers._nanny import NOT_STARTED, Nanny
from esper_ab.launchers._node_talk import Admit, Begin, FromNanny, KeySaid, Over, Signal, ToNanny, line

_SPEAKING = threading.Lock()
_decode = msgspec.json.Decoder(ToNanny).decode


def main(entry: str) -> None:
    """Be the nanny."""
    nanny = Nanny(str(Path.cwd()))
    command = child_command("esper_ab.launchers._on_node", entry, elsewhere=True)
    for text in sys.stdin.buffer:
        match _decode(text):
            case Begin(name, order):
                _begin(nanny, name, command, order)
            case Admit(name):
                nanny.tell(name, b"\n", None)
            case Signal(name, number):
                nanny.signal(name, number, None)
    os._exit(ORPHANED)


def _begin(nanny: Nanny, name: str, command: list[str], order: str) -> None:
    try:
        nanny.begin(name, command, order.encode() + b"\n", {})
    except OSError as error:
        _say(Over(name, NOT_STARTED, f"the worker could not be started: {error}\n".encode()))
        return
    threading.Thread(target=_follow, args=(nanny, name), daemon=True).start()


def _follow(nanny: Nanny, name: str) -> None:
    """Say what the worker says, and its end."""
    _say(KeySaid(name, nanny.line(name, None).decode(errors="replace").rstrip("\n")))
    status, _, complaint = nanny.wait(name, None)
    _say(Over(name, status, complaint))


def _say(message: FromNanny) -> None:
    data = line(message)
    with _SPEAKING:
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
