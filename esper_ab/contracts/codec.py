"""Messages as msgpack bytes and back. Independent of sockets.

msgpack unpacks the bytes within the limits of `wire_limits`; msgspec then converts the lists and maps to the type of
the message, strictly.
"""

from __future__ import annotations

import re
from itertools import repeat
from typing import Any, get_args

import msgpack
import msgspec

from esper_ab.contracts.message import Message
from esper_ab.contracts.messages import CoordinatorMessage, WorkerMessage
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wire_limits import LARGEST_BYTES, WireLimits, limits_of

_WHY_CHARS = 200  # bounded because a reason may quote the peer's bytes
_FLOAT_IN_RANGE = re.compile(r"Expected `float` [<>]=? [^ ]+")  # msgspec says the same of NaN as of a small number
# A list or map is one byte on the wire and up to seventy in memory. A message longer than _SHORT_BYTES may therefore
# hold only one per _BYTES_PER_CONTAINER of its length; those of a typed message are longer than that.
_SHORT_BYTES = 64 << 10
_BYTES_PER_CONTAINER = 16


class _Side:
    """The messages of one side, by the value of their field `kind`, and their limits."""

    def __init__(self, messages: Any) -> None:
        """`messages`: a union of message types."""
        self.limits = limits_of(messages)
        self.kinds: dict[object, type[Message]] = {kind.__struct_config__.tag: kind for kind in get_args(messages)}


# msgspec analyses a type on first use, and two threads doing so at once crash (seen with 0.22). So do it at import.
_ANALYSED = [msgspec.json.Decoder(kind) for kind in get_args(WorkerMessage | CoordinatorMessage)]
_WORKER = _Side(WorkerMessage)
_COORDINATOR = _Side(CoordinatorMessage)


class ProtocolError(ValueError):
    """Bytes that are not a message of this protocol.

    The error text is one line with the position and the reason, and is safe to print on a terminal.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(visible_line(reason, _WHY_CHARS))


def decode_from_worker(data: bytes) -> WorkerMessage:
    """Decode one message from a worker; raises ProtocolError if `data` is not exactly one message."""
    message: WorkerMessage = _decode(data, _WORKER)
    return message


def decode_from_coordinator(data: bytes) -> CoordinatorMessage:
    """Decode one message from the coordinator; raises ProtocolError if `data` is not exactly one message."""
    message: CoordinatorMessage = _decode(data, _COORDINATOR)
    return message


def encode(message: Message) -> bytes:
    """Encode one message as msgpack bytes; floats must be finite (records hold None instead)."""
    data: bytes = msgpack.packb(msgspec.to_builtins(message))
    return data


def _decode(data: bytes, side: _Side) -> Any:
    value = _unpack(data, side.limits)
    tag = value.get("kind") if isinstance(value, dict) else None
    kind = side.kinds.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise ProtocolError(f"is not a map whose `kind` is one of {', '.join(map(str, side.kinds))}")
    try:  # by the type of this message, because msgspec takes four times as long for a union of all
        return msgspec.convert(value, type=kind, strict=True)
    except msgspec.ValidationError as error:
        raise ProtocolError(_FLOAT_IN_RANGE.sub(r"\g<0>, and not one that is not finite", str(error))) from None


def _unpack(data: bytes, limits: WireLimits) -> Any:
    """Return the lists, maps and scalars in `data`; raises ProtocolError if one is above its limit.

    msgpack itself refuses more than a thousand levels. Which of them a message may have is decided by its type.
    """
    size = len(data)
    if size > LARGEST_BYTES:
        raise ProtocolError(f"{size} bytes, but {LARGEST_BYTES} are the limit")
    if size <= _SHORT_BYTES:
        count = {}
    else:
        count = dict.fromkeys(("list_hook", "object_hook"), _counting(size))
    try:
        return msgpack.unpackb(
            data,
            raw=False,
            strict_map_key=True,
            max_array_len=min(size, limits.entries),
            max_map_len=min(size, limits.keys),
            max_str_len=min(size, limits.text_bytes),
            max_bin_len=0,
            max_ext_len=0,
            **count,
        )
    except (ValueError, TypeError, RecursionError, MemoryError, msgpack.UnpackException) as error:
        raise ProtocolError(f"not msgpack within the limits: {str(error) or type(error).__name__}") from None


def _counting(size: int) -> Any:
    """Return a hook that passes lists and maps on, and raises ValueError if they are too many for `size` bytes."""
    containers_left = repeat(None, size // _BYTES_PER_CONTAINER)

    def spend(container: Any) -> Any:
        for _ in containers_left:
            return container
        raise ValueError("too many lists and maps for its length")

    return spend
