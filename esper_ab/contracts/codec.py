"""Messages as msgpack bytes and back, with strict typed decoding. Independent of sockets."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.messages import CoordinatorMessage, Message, WorkerMessage
from esper_ab.contracts.wording import visible_line

LARGEST_BYTES = 64 << 20  # of a message on the wire
_WHY_CHARS = 200  # bounded because a reason may quote the peer's bytes
_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MemoryError)

# msgspec analyses a type on first use, and two threads doing so at once crash (seen with 0.22). So do it at import.
_FROM_WORKER: msgspec.msgpack.Decoder[WorkerMessage] = msgspec.msgpack.Decoder(WorkerMessage)
_FROM_COORDINATOR: msgspec.msgpack.Decoder[CoordinatorMessage] = msgspec.msgpack.Decoder(CoordinatorMessage)
_ENCODER = msgspec.msgpack.Encoder()


class ProtocolError(ValueError):
    """Bytes that are not a message of this protocol.

    The error text is one line with the position and the reason, and is safe to print on a terminal.
    """

    def __init__(self, why: str) -> None:
        super().__init__(visible_line(why, _WHY_CHARS))


def decode_from_worker(data: bytes) -> WorkerMessage:
    """Decode one message from a worker; raises ProtocolError if `data` is not exactly one message."""
    try:
        return _FROM_WORKER.decode(data)
    except _MALFORMED as error:
        raise ProtocolError(str(error)) from None


def decode_from_coordinator(data: bytes) -> CoordinatorMessage:
    """Decode one message from the coordinator; raises ProtocolError if `data` is not exactly one message."""
    try:
        return _FROM_COORDINATOR.decode(data)
    except _MALFORMED as error:
        raise ProtocolError(str(error)) from None


def encode(message: Message) -> bytes:
    """Encode one message as msgpack bytes; floats must be finite (records hold None instead)."""
    return _ENCODER.encode(message)
