"""`… _on_node ENTRY`: a worker that a supervisor has started. Its order is the first line of standard input.

Standard input stays open as long as the coordinator lives, whatever the worker does.
"""

from __future__ import annotations

import os
import sys
import threading

import msgspec

from esper_ab.contracts.messages import WorkerOrder
from esper_ab.contracts.own_packages import ORPHANED
from esper_ab.launchers._entering import call_in_process, introduce

_BYTES = 1 << 16
_decode = msgspec.json.Decoder(WorkerOrder).decode


def _first_line() -> bytes:
    """Of standard input; nothing beyond it is read. The order is short, and this is done once."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(ORPHANED)
        line += byte
    return bytes(line)


def _end_with_the_coordinator() -> None:
    while os.read(0, _BYTES):
        pass
    os._exit(ORPHANED)


def main(entry: str) -> None:
    """Be the worker."""
    order = _decode(_first_line())
    if order.server_key and not introduce(order, 1, 0):
        os._exit(ORPHANED)
    threading.Thread(target=_end_with_the_coordinator, name="coordinator watch", daemon=True).start()
    call_in_process(entry, order)


if __name__ == "__main__":
    main(sys.argv[1])
