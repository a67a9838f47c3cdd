"""What a coordinator and the supervisor of a whole node say to each other: a line of JSON each, over the supervisor's
streams.
"""

from __future__ import annotations

import msgspec


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """Start a worker, which is called `name` from now on; its order is JSON itself."""

    name: str
    order: str


class Admit(msgspec.Struct, frozen=True, tag="admit"):
    """The worker's public key is known: it may connect."""

    name: str


class Signal(msgspec.Struct, frozen=True, tag="signal"):
    """Send the worker a signal."""

    name: str
    number: int


class KeySaid(msgspec.Struct, frozen=True, tag="key_said"):
    """The first line of the worker's output: its public key, or "" when it has ended without one."""

    name: str
    line: str


class Over(msgspec.Struct, frozen=True, tag="over"):
    """The worker has ended, with a status as `subprocess` has it; what it wrote to standard error last."""

    name: str
    status: int
    complaint: bytes


ToSupervisor = Begin | Admit | Signal
FromSupervisor = KeySaid | Over


def line(message: ToSupervisor | FromSupervisor) -> bytes:
    return msgspec.json.encode(message) + b"\n"
