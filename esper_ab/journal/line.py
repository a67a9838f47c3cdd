"""Format of one journal line, for writers and readers: numbered, chained, with its CRC inside the JSON object.

{"n":3,"prev":"8a698ba7","t":"2026-11-21T20:41:52.737+00:00","event":{"kind":"episode",…},"crc":"5d41402a"}
"""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Annotated

import msgspec

from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.journal.events import SCHEMA, AnyEvent, ExperimentStarted

FIRST_PREV = "00000000"  # `prev` of the first line
_TAIL = b',"crc":"%08x"}\n'  # CRC over the bytes before it
_TAIL_BYTES = len(_TAIL % 0)
_CRC_IN_TAIL = slice(-11, -3)
LONGEST_LINE_BYTES = 256 << 20  # that is read; the first line, with the plan, has some kilobytes per run
_EPISODE = b'"event":{"kind":"episode"'
_KIND_WITHIN = 120  # bytes from the line's start


Stamp = Annotated[datetime, msgspec.Meta(tz=True)]  # time of a line; decoding it costs a hundredth of decoding the rest


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One line of a journal."""

    n: int
    prev: str
    t: Stamp
    event: AnyEvent
    crc: str


_decoder = msgspec.json.Decoder(Line)


class _Origin(msgspec.Struct, frozen=True):
    """The facts about the writer in the first line of a journal, whichever version of esper_ab wrote it."""

    schema: int
    versions: dict[str, str]


class _FirstLine(msgspec.Struct, frozen=True):
    event: _Origin


_decode_first = msgspec.json.Decoder(_FirstLine).decode


def stamp_text(stamp: datetime) -> str:
    """Format a time stamp as in journal lines: ISO 8601 with milliseconds."""
    return stamp.isoformat(timespec="milliseconds")


def written(n: int, prev_crc: str, stamp: datetime, event: AnyEvent) -> tuple[bytes, str]:
    """Encode one line; return it and its CRC, which is the `prev_crc` of the next line."""
    time_bytes = stamp_text(stamp).encode()
    event_bytes = msgspec.json.encode(event)
    body = b'{"n":%d,"prev":"%s","t":"%s","event":%s' % (n, prev_crc.encode(), time_bytes, event_bytes)
    tail = _TAIL % zlib.crc32(body)
    return body + tail, tail[_CRC_IN_TAIL].decode()


def wrong_tail(data: bytes) -> str:
    """Check that a line ends in the CRC of its contents. Returns what is wrong, or "" if nothing is."""
    if data.endswith(_TAIL % zlib.crc32(memoryview(data)[:-_TAIL_BYTES])):
        return ""
    digits = data[_CRC_IN_TAIL].decode(errors="replace")
    is_tail = data[-_TAIL_BYTES:] == b',"crc":"%s"}\n' % digits.encode()
    if is_tail:
        return "its CRC does not match its contents"
    return "it does not end with a CRC"


def lost_newline(data: bytes) -> bool:
    """True if a line is intact except that its newline is a different byte. No writer leaves such a line."""
    return not data.endswith(b"\n") and wrong_tail(data[:-1] + b"\n") == ""


def decode(data: bytes) -> Line:
    """Decode a line without checking its CRC; MsgspecError if it is not a line of this version of esper_ab."""
    line = _decoder.decode(data)
    if isinstance(line.event, ExperimentStarted) and line.event.schema != SCHEMA:
        raise msgspec.ValidationError(f"its schema is {line.event.schema}, not {SCHEMA}")
    return line


def other_writer(data: bytes) -> str:
    """Return the version of esper_ab that wrote a first line with a different schema; "" for any other line."""
    try:
        origin = _decode_first(data).event
    except UNREADABLE:
        return ""
    if origin.schema == SCHEMA:
        return ""
    return f"esper_ab {origin.versions.get('esper_ab', 'of another version')}"


def event_of(data: bytes) -> AnyEvent | None:
    """Return the event of an intact line of this version, without checking the chain; None for any other line."""
    try:
        return None if wrong_tail(data) else decode(data).event
    except UNREADABLE:
        return None


def is_episode(data: bytes) -> bool:
    """True if a line holds a training episode; does not decode it."""
    return data.find(_EPISODE, 0, _KIND_WITHIN) >= 0
