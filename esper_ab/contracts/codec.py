"""Bytes <-> messages: msgpack under hard limits, then strict typed decoding. Independent of sockets.

The limits are checked before anything typed is built, so a hostile peer cannot make a small frame expensive. A frame
that is too short to break any of them is decoded into its type directly, in a tenth of the time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgpack
import msgspec

from esper_ab.contracts.messages import Chunk, CoordinatorMessage, Message, WorkerMessage
from esper_ab.contracts.records import MOST_KEYS
from esper_ab.contracts.wording import visible_line

FRAME_LIMIT_BYTES = 1 << 20  # largest frame on the wire
CHUNK_BYTES = 512 << 10
MESSAGE_LIMIT_BYTES = 64 << 20  # largest message after reassembly from chunks
_WHY_CHARS = 200  # bounded because a reason may quote the peer's bytes
_MAX_DEPTH = 12
_MAX_ARRAY = 1 << 18
_MAX_MAP = MOST_KEYS
_MAX_STR = 1 << 16
# A message may hold _CONTAINERS lists and maps plus one per _BYTES_PER_CONTAINER of its length: an empty container is
# one byte on the wire and seventy in memory, so a frame full of them would exhaust memory.
_CONTAINERS = 1024
_BYTES_PER_CONTAINER = 16

# A frame this short breaks no limit: a list takes a byte per entry, a typed container more than _BYTES_PER_CONTAINER.
_SHORT_BYTES = 32 << 10

# msgspec analyses a type on first use, and two threads doing so at once crash (seen with 0.22). So do it at import.
msgspec.json.Decoder(WorkerMessage)
msgspec.json.Decoder(CoordinatorMessage)
_DIRECT: msgspec.msgpack.Decoder[WorkerMessage] = msgspec.msgpack.Decoder(WorkerMessage)
_ENCODER = msgspec.msgpack.Encoder()


class ProtocolError(ValueError):
    """Bytes that are not a message of this protocol; one line with place and reason, safe to print on a terminal."""

    def __init__(self, why: str) -> None:
        super().__init__(visible_line(why, _WHY_CHARS))


def _check_depth(value: Any) -> None:
    """Raise ProtocolError for nesting deeper than _MAX_DEPTH; iterative, so deep input cannot exhaust the stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise ProtocolError(f"nested deeper than {_MAX_DEPTH}")
        level = [
            child
            for item in level
            if isinstance(item, list | dict)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, list | dict)
        ]


def _unpack(data: bytes) -> Any:
    if len(data) > MESSAGE_LIMIT_BYTES:
        raise ProtocolError(f"{len(data)} bytes, but the limit is {MESSAGE_LIMIT_BYTES}")
    left = iter(range(_CONTAINERS + len(data) // _BYTES_PER_CONTAINER))

    def spend(container: Any) -> Any:
        if next(left, None) is None:
            raise ValueError("too many lists and maps for its length")
        return container

    try:
        value = msgpack.unpackb(
            data, raw=False, strict_map_key=True,
            max_array_len=_MAX_ARRAY if len(data) > FRAME_LIMIT_BYTES else 1 << 15, max_map_len=_MAX_MAP,
            max_str_len=_MAX_STR, max_bin_len=CHUNK_BYTES, max_ext_len=0, list_hook=spend, object_hook=spend,
        )
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ProtocolError(f"not msgpack within limits: {error}") from None
    _check_depth(value)
    return value


def _decode(data: bytes, kinds: Any) -> Any:
    try:
        return msgspec.convert(_unpack(data), type=kinds, strict=True)
    except msgspec.ValidationError as error:
        raise ProtocolError(str(error)) from None


def decode_from_worker(data: bytes) -> WorkerMessage:
    """Decode one worker message; ProtocolError unless `data` is exactly one."""
    if len(data) <= _SHORT_BYTES:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # `_decode` reports the error
            return _DIRECT.decode(data)
    message: WorkerMessage = _decode(data, WorkerMessage)
    return message


def decode_from_coordinator(data: bytes) -> CoordinatorMessage:
    """Decode one coordinator message; ProtocolError unless `data` is exactly one."""
    message: CoordinatorMessage = _decode(data, CoordinatorMessage)
    return message


def encode(message: Message) -> bytes:
    """Encode one message as msgpack bytes; floats must be finite (records hold None instead)."""
    return _ENCODER.encode(message)


def split(data: bytes, seq: int) -> list[bytes]:
    """Return the frames to send for encoded `data`: `data` itself, or numbered chunks when above the chunk size."""
    if len(data) <= CHUNK_BYTES:
        return [data]
    pieces = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)]
    return [encode(Chunk(seq=seq, index=i, count=len(pieces), data=piece)) for i, piece in enumerate(pieces)]


class Assembler:
    """Reassembles the chunks of one peer in bounded memory; out-of-order or oversized pieces raise ProtocolError."""

    def __init__(self) -> None:
        self._seq = -1
        self._pieces: list[bytes] = []

    def add(self, chunk: Chunk) -> WorkerMessage | None:
        """Add one chunk; return the whole message once its last piece is in, else None."""
        if chunk.index == 0:
            self._seq, self._pieces = chunk.seq, []
        limit = MESSAGE_LIMIT_BYTES // CHUNK_BYTES
        if chunk.seq != self._seq or chunk.index != len(self._pieces) or not chunk.index < chunk.count <= limit:
            self._seq, self._pieces = -1, []
            raise ProtocolError(f"chunk {chunk.index} of {chunk.count} (seq {chunk.seq}) out of order or too many")
        self._pieces.append(chunk.data)
        if len(self._pieces) < chunk.count:
            return None
        data, self._seq, self._pieces = b"".join(self._pieces), -1, []
        message = decode_from_worker(data)
        if isinstance(message, Chunk):
            raise ProtocolError("a chunk inside chunks")
        return message
