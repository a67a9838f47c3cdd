"""Fields of a protobuf message, by their numbers, without a schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
Field = tuple[int, int, int | bytes]  # number, wire type, value: an int of a VARINT, else the bytes


class BrokenMessage(ValueError):
    """Bytes that are no protobuf message."""


def fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message in order. Raises BrokenMessage."""
    offset = 0
    end = len(message)
    while offset < end:
        key, offset = _varint(message, offset)
        wire = key & 7
        value: int | bytes
        if wire == VARINT:
            value, offset = _varint(message, offset)
        else:
            if wire == BYTES:
                size, offset = _varint(message, offset)
            elif wire in (FIXED64, FIXED32):
                size = 8 if wire == FIXED64 else 4
            else:
                raise BrokenMessage(f"wire type {wire}")
            if size > end - offset:
                raise BrokenMessage("a field is cut")
            value = message[offset : offset + size]
            offset += size
        yield key >> 3, wire, value


def parts(message: bytes, number: int) -> list[bytes]:
    """Return the bytes of all fields with this number: messages or texts."""
    return [value for field, _, value in fields(message) if field == number and isinstance(value, bytes)]


def text(message: bytes, number: int) -> str:
    """Return the last text with this number, or ""."""
    values = parts(message, number)
    return values[-1].decode(errors="replace") if values else ""


def signed(value: int | bytes) -> int:
    """Return a VARINT as an int64."""
    if isinstance(value, bytes):
        raise BrokenMessage("expected an integer")
    return value - (1 << 64) if value >> 63 else value


def real(value: int | bytes) -> float:
    """Return a FIXED32 or FIXED64 as a float."""
    if not isinstance(value, bytes) or len(value) not in (4, 8):
        raise BrokenMessage("expected a float")
    number_format = "<d"
    if len(value) == 4:
        number_format = "<f"
    number: float = struct.unpack(number_format, value)[0]
    return number


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    """Return an integer and the place after it."""
    if offset < len(message) and message[offset] < 0x80:  # most are of one byte
        return message[offset], offset + 1
    value = 0
    for place, byte in enumerate(message[offset : offset + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, offset + place + 1
    raise BrokenMessage("an integer has no end")
