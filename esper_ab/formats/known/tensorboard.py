"""TensorBoard event files, as SummaryWriter of PyTorch, TensorFlow or tensorboardX writes them: scalars of one run.

A file is a sequence of records: length, checksum of the length, a protobuf `Event`, its checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.formats.known import Format
from esper_ab.formats.known._curves import Curves, likeliest_first
from esper_ab.formats.known._protobuf import FIXED32, BrokenMessage, fields, parts, real, signed
from esper_ab.formats.source_table import SourceTable

_NAME = "a TensorBoard event file"
_VERSION = b"brain.Event:"  # in the first record
_MOST_BYTES = 512 * 2**20
_HEAD = struct.Struct("<QI")  # length of the record, and its checksum
_FOOT_BYTES = 4  # checksum of the record
_STEPS = "step"
_EVENT_STEP, _EVENT_SUMMARY, _EVENT_SESSION = 2, 5, 7
_VALUE, _TAG, _SIMPLE, _TENSOR = 1, 1, 2, 8
_TENSOR_TYPE, _TENSOR_BYTES = 1, 4
_TYPES = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}  # of a tensor: its bytes
_TYPED_VALUES = {1: 5, 2: 6, 3: 7, 9: 10}  # of a tensor: the field with its values, if it has no bytes
_SESSION_STATUS, _SESSION_START = 1, 1
_POLYNOMIAL = 0x82F63B78


def _recognises(file: Path, head: bytes) -> bool:
    return _VERSION in head[: _HEAD.size + 32]


def _read(file: Path) -> list[SourceTable]:
    curves = Curves()
    notes: tuple[str, ...] = ()
    content = read_regular(file, _MOST_BYTES)
    try:
        for event in _records(content):
            _add(curves, event)
    except _CutRecordError:
        notes = (f"The last record of {file.name} is incomplete: the run was ended, or still goes on.",)
    except (BrokenMessage, struct.error) as error:
        raise UsageError(f"{file}, {_NAME}, is damaged: {error}") from None
    if not len(curves):
        raise UsageError(f"{file}, {_NAME}, has no scalars")
    steps, columns = curves.columns(f"{file}, {_NAME}")
    name = _STEPS if _STEPS not in columns else f"{_STEPS} of the event"
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns={name: steps} | columns,
            row_numbers=range(1, len(steps) + 1),
            roles={"step": name},
            outcomes=likeliest_first(columns),
            notes=notes,
        )
    ]


class _CutRecordError(Exception):
    """The file ends within a record."""


def _records(content: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(content):
        start = offset + _HEAD.size
        if start > len(content):
            raise _CutRecordError
        length, checksum = _HEAD.unpack_from(content, offset)
        if checksum != _masked_checksum(content[offset : offset + 8]):
            raise BrokenMessage(f"a wrong checksum at byte {offset}")
        offset = start + length + _FOOT_BYTES
        if offset > len(content):
            raise _CutRecordError
        yield content[start : start + length]


def _add(curves: Curves, event: bytes) -> None:
    """Add the scalars of an event."""
    step = 0
    summaries = []
    for number, _, value in fields(event):
        if number == _EVENT_STEP:
            step = signed(value)
        elif number == _EVENT_SUMMARY and isinstance(value, bytes):
            summaries.append(value)
        elif number == _EVENT_SESSION and isinstance(value, bytes) and step and _starts(value):
            curves.forget_from(step)
    for summary in summaries:
        for value in parts(summary, _VALUE):
            tag, scalar = _scalar(value)
            if tag and scalar is not None:
                curves.add(step, tag, scalar)


def _starts(session: bytes) -> bool:
    """True if a writer says that it goes on from this step: what was logged there before has been undone."""
    return any(number == _SESSION_STATUS and value == _SESSION_START for number, _, value in fields(session))


def _scalar(message: bytes) -> tuple[str, float | None]:
    """Return the tag of a value and, if it is a number, the number."""
    tag = ""
    scalar = None
    for number, wire, value in fields(message):
        if number == _TAG and isinstance(value, bytes):
            tag = value.decode(errors="replace")
        elif number == _SIMPLE and wire == FIXED32:
            scalar = real(value)
        elif number == _TENSOR and isinstance(value, bytes):
            scalar = _read_tensor(value)
    return tag, scalar


def _read_tensor(message: bytes) -> float | None:
    """Return the number of a tensor, as `tf.summary.scalar` writes it; None if it has another type or more values."""
    by_number = {number: value for number, _, value in fields(message)}
    kind = by_number.get(_TENSOR_TYPE, 0)
    if not isinstance(kind, int) or kind not in _TYPES:
        return None
    content = by_number.get(_TENSOR_BYTES, b"")
    if isinstance(content, bytes) and len(content) == struct.calcsize(_TYPES[kind]):
        return float(struct.unpack(_TYPES[kind], content)[0])
    value = by_number.get(_TYPED_VALUES[kind])
    if isinstance(value, bytes) and len(value) in (4, 8) and kind in (1, 2):
        return real(value)
    return None


def _table() -> tuple[int, ...]:
    """Return the checksums (CRC-32C) of all bytes."""
    table = []
    for byte in range(256):
        for _ in range(8):
            is_odd = byte & 1
            byte >>= 1
            if is_odd:
                byte ^= _POLYNOMIAL
        table.append(byte)
    return tuple(table)


_TABLE = _table()


def _masked_checksum(content: bytes) -> int:
    checksum = 0xFFFF_FFFF
    for byte in content:
        checksum = checksum >> 8 ^ _TABLE[(checksum ^ byte) & 0xFF]
    checksum ^= 0xFFFF_FFFF
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFF_FFFF


FORMAT = Format(_NAME, _recognises, _read, order=2)
