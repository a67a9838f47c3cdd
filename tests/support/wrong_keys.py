"""Workers that come with a key that opens nothing: another one than they have said, or that of their predecessor."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from esper_ab.contracts import link_keys
from support import fake_worker

VARIABLE = "OLD_KEY"  # names the file that a worker leaves its key in
VICTIM = "w01"


def wrong(order):
    """Entry point: the first worker of w01 connects with a pair that it has told nobody of."""
    if order.identity == f"{VICTIM}/1":
        link_keys.make(order.identity, order.server_key)
    fake_worker.main(order)


def old(order):
    """Entry point: the first worker of w01 leaves its key behind, and the second one connects with that."""
    file = Path(os.environ[VARIABLE])
    if order.identity == f"{VICTIM}/1":
        file.write_bytes(msgspec.json.encode(link_keys.take(order.identity)))
        os._exit(1)
    if order.identity == f"{VICTIM}/2":
        link_keys._OWN[order.identity] = msgspec.json.decode(file.read_bytes(), type=link_keys.LinkKeys)
    fake_worker.main(order)
