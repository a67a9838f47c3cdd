"""Hostile peers: frames that are almost messages, a worker that sends them, and strangers at a TCP port.

All messages name a run that no experiment has, so that a mutated message is refused even if it is valid.
"""

import os
import socket
import struct
from pathlib import Path

import msgspec
import zmq

from esper_ab.contracts import link_keys
from esper_ab.contracts.codec import encode
from esper_ab.contracts.messages import PROTOCOL, Failed, Hello, Progress
from esper_ab.launchers.inline import InlineLauncher
from support.plans import fake_plans
from support.workers import fake_worker
from support.workers.fake_worker import report_of

PATIENCE_MS = 5000
_SPEC = fake_plans.plan().blocks[0].runs[0]
SPEC = msgspec.structs.replace(
    _SPEC, ref=msgspec.structs.replace(_SPEC.ref, name="nobody/77", group_id="nobody", replicate=77)
)
MESSAGES = tuple(
    encode(message)
    for message in (
        Hello(worker="w77", incarnation=1, protocol=PROTOCOL, pid=42, uuids=("",), torch_version="none", sources=""),
        *(report_of(SPEC, milestone) for milestone in range(4)),
        Progress(run=SPEC.ref, milestone=1, step=7, phase="train"),
        Failed(summary="\x1b[2J<script>'; DROP TABLE runs", traceback="…"),
    )
)
BOMBS = (
    b"\xdc\x00\x1f" + (b"\xdc\x7f\xff" + b"\x80" * 32767) * 31,  # a million empty maps in a megabyte
    b"\xdc\x00\x1f" + (b"\xdc\x7f\xff" + b"\x90" * 32767) * 31,
    b"\x91" * 500_000,
    b"\x81\xa1a" * 300_000,
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff" + b"x" * 1000,
    b"\xc6\x7f\xff\xff\xff",
    b"\xdb\x00\x0f\x00\x00" + b"x" * 0xF0000,
    b"\xc9\x00\x00\x10\x00\x01" + b"x" * 4096,
)
_BOMB_EVERY = 5000


def frames(rng, count):
    """Yield `count` frames: half of them mutated messages, half random bytes, and one in _BOMB_EVERY a bomb."""
    for index in range(count):
        if index % _BOMB_EVERY == 7:
            yield BOMBS[rng.randrange(len(BOMBS))]
        elif rng.random() < 0.5:
            yield _mutated(rng)
        else:
            yield rng.randbytes(rng.randrange(64))


def _mutated(rng):
    data = bytearray(rng.choice(MESSAGES))
    for _ in range(rng.randrange(1, 4)):
        index = rng.randrange(len(data))
        match rng.randrange(5):
            case 0:
                data[index] = rng.randrange(256)
            case 1:
                del data[index:]
            case 2:
                data[index:index] = rng.randbytes(rng.randrange(1, 9))
            case 3:
                del data[index : index + rng.randrange(1, 9)]
            case _:
                donor = rng.choice(MESSAGES)
                data[index:] = donor[rng.randrange(len(donor)) :]
        if not data:
            break
    return bytes(data)


class HostileFirst(InlineLauncher):
    """A launcher of threads that calls `attack(order)` for the first incarnation of w00.

    If `attack` returns a worker, that worker replaces the real one.
    """

    def __init__(self, attack, transport="ipc"):
        super().__init__("support.workers.fake_worker:main_in_thread", transport)
        self._attack = attack
        self.orders = []

    def start(self, order):
        self.orders.append(order)
        attacks = self._attack(order) if order.identity == "w00/1" else None
        return attacks or super().start(order)


def rubbish_first(payloads, transport):
    """Return a launcher whose first incarnation of w00 sends `payloads` and ends; all others are real workers."""
    rubbish.payloads = payloads
    return HostileFirst(InlineLauncher("support.workers.hostile_peers:rubbish").start, transport)


def rubbish(order):
    send_all(order.endpoint, order.identity.encode(), rubbish.payloads, link_keys.take(order.identity))


def confess(order):
    """Entry point of a worker that writes its secret, and whether other processes could read it, into $CONFESS_TO."""
    keys = link_keys.take(order.identity)
    link_keys._OWN[order.identity] = keys
    public_texts = [Path(f"/proc/self/{name}").read_bytes() for name in ("cmdline", "environ")]
    public_texts += [msgspec.json.encode(order), repr(keys).encode()]
    is_exposed = any(keys.secret.encode() in text for text in public_texts)
    (Path(os.environ["CONFESS_TO"]) / order.worker).write_text(f"{keys.secret} {is_exposed}")
    fake_worker.main(order)


def admitted(hub, identity):
    """Return keys with which the hub admits the worker `identity`."""
    keys = link_keys.make(identity, hub.admit(identity))
    hub.register(identity, keys.public)
    return link_keys.take(identity)


def dealer(context, endpoint, identity, keys=None):
    peer = context.socket(zmq.DEALER)
    peer.setsockopt(zmq.LINGER, PATIENCE_MS)
    peer.setsockopt(zmq.SNDTIMEO, PATIENCE_MS)
    peer.setsockopt(zmq.IDENTITY, identity)
    if keys:
        curve(peer, keys.server_public.encode(), (keys.public.encode(), keys.secret.encode()))
    peer.connect(endpoint)
    return peer


def curve(peer, server, pair):
    peer.setsockopt(zmq.CURVE_SERVERKEY, server)
    peer.setsockopt(zmq.CURVE_PUBLICKEY, pair[0])
    peer.setsockopt(zmq.CURVE_SECRETKEY, pair[1])


def send_all(endpoint, identity, payloads, keys=None):
    """Send `payloads` and close; return when all of them have been handed over."""
    with zmq.Context() as context, dealer(context, endpoint, identity, keys) as peer:
        for frame in payloads:
            peer.send(frame)


# --- strangers at a TCP port: each returns what it received ---


def raw(endpoint, data):
    """Write `data` and read until the other end is silent or hangs up."""
    received_bytes = b""
    (host, _, port) = endpoint.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.settimeout(0.3)
        try:
            connection.sendall(data)
            while piece := connection.recv(4096):
                received_bytes += piece
        except OSError:
            pass
    return received_bytes


def zmtp1(identity, message):
    """Return the bytes that a ZMTP 1.0 peer sends: its name and a message, without any handshake."""
    return b"".join(struct.pack("BB", len(part) + 1, 0) + part for part in (identity, message))


def stranger(endpoint, setup):
    """Connect a DEALER that calls itself a worker, and send Hello; return whether it gets an answer."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
        peer.setsockopt(zmq.LINGER, 0)
        peer.setsockopt(zmq.IDENTITY, b"w00/1")
        setup(peer)
        peer.connect(endpoint)
        peer.send(MESSAGES[0])
        return bool(peer.poll(300))
