"""The steps of a worker process before its entry point: exchange keys, and make the user's modules importable.

`… _entry ENTRY` is a worker that a supervisor has started. Its WorkerOrder is the first line of standard input.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from multiprocessing import parent_process
from typing import Any

import msgspec

from esper_ab.contracts import link_keys
from esper_ab.contracts.guard import ORPHANED, end_with_parent
from esper_ab.contracts.own_packages import add_working_directory, import_own
from esper_ab.contracts.worker_order import WorkerOrder

_decode = msgspec.json.Decoder(WorkerOrder).decode


def introduce(order: WorkerOrder, question: int, answer: int) -> bool:
    """Make the worker's keys, write the public key to descriptor `question` and wait for a byte on descriptor `answer`.

    Returns False if the coordinator ended in the meantime.
    """
    keys = link_keys.make(order.identity, order.server_key)
    os.write(question, f"{keys.public}\n".encode())
    return os.read(answer, 1) != b""


def call(entry: str, order: WorkerOrder, coordinator: socket.socket | None = None) -> None:
    """Import and call "module:function" with `order`, in the worker's own process or thread.

    `coordinator`: the socket for the key exchange, which comes first; the socket is then closed.
    """
    if coordinator is not None:
        with coordinator:
            if not introduce(order, coordinator.fileno(), coordinator.fileno()):
                return
    module, _, function = entry.partition(":")
    main_function: Callable[[WorkerOrder], Any] = getattr(import_own(module), function)
    main_function(order)


def call_in_process(entry: str, order: WorkerOrder, coordinator: socket.socket | None = None) -> None:
    """Same as `call`, in a worker's own process; the user's modules are imported from where the preflight found them.

    From here on, the process ends with its parent. This is arranged before any slow import.
    """
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        end_with_parent(parent.pid)
    add_working_directory()
    call(entry, order, coordinator)


def call_forked(entry: str, order: str, keys: int = -1) -> None:
    """Same as `call_in_process`, in a child of the start process.

    `order`: as JSON. `keys`: descriptor of the socket for the key exchange; -1 if no keys are needed.
    """
    add_working_directory()
    call(entry, _decode(order), socket.socket(fileno=keys) if keys >= 0 else None)


def main(entry: str) -> None:
    """Run a worker with this entry point, "module:function"."""
    line = sys.stdin.buffer.readline()  # a buffered read: nothing more is sent before the key
    if not line.endswith(b"\n"):
        os._exit(ORPHANED)
    order = _decode(line)
    if order.server_key and not introduce(order, 1, 0):
        os._exit(ORPHANED)
    call_in_process(entry, order)


if __name__ == "__main__":
    main(sys.argv[1])
