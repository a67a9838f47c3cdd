"""Rare contents of event files; tests/field/test_files.py reads files written by SummaryWriter."""

import struct

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import read_file
from esper_ab.formats.known.tensorboard import _masked_checksum
from esper_ab.formats.source_table import NOT_FINITE, series_of


def part(number: int, wire: int, content: bytes) -> bytes:
    return bytes([number << 3 | wire]) + content


def text(number: int, content: bytes) -> bytes:
    return part(number, 2, bytes([len(content)]) + content)


def record(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    checksums = [struct.pack("<I", _masked_checksum(content)) for content in (length, event)]
    return length + checksums[0] + event + checksums[1]


def scalar(step: int, tag: bytes, value: float) -> bytes:
    return record(part(2, 0, bytes([step])) + text(5, text(1, text(1, tag) + part(2, 5, struct.pack("<f", value)))))


VERSION = record(text(3, b"brain.Event:2"))
START = text(7, part(1, 0, b"\x01"))  # a writer that goes on


def write(folder, *records):
    file = folder / "events"
    file.write_bytes(b"".join((VERSION, *records)))
    return file


def test_the_masked_checksum_equals_a_published_value():
    assert _masked_checksum(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFF_FFFF


def test_a_restarted_writer_replaces_values_from_its_first_step_on(tmp_path):
    restarted_record = record(part(2, 0, b"\x02") + START)
    (table,) = read_file(
        write(tmp_path, *(scalar(n, b"a", n) for n in (1, 2, 3)), restarted_record, scalar(2, b"a", 7))
    )
    series = series_of(table, "a")
    assert (series.steps.tolist(), series.values.tolist()) == ([1, 2], [1, 7])


def test_a_note_mentions_an_incomplete_last_record(tmp_path):
    (table,) = read_file(write(tmp_path, scalar(1, b"a", 1.5), scalar(2, b"a", 2.5)[:-9]))
    assert series_of(table, "a").values.tolist() == [1.5]
    assert table.notes == ("The last record of events is incomplete: the run was ended, or still goes on.",)


def test_non_finite_values_are_distinguished_from_missing_values(tmp_path):
    values = [1.5, float("nan"), 2.5, float("-inf")]
    (table,) = read_file(write(tmp_path, *(scalar(step, b"loss", value) for step, value in enumerate(values))))
    assert series_of(table, "loss").values.tolist() == [1.5, NOT_FINITE, 2.5, NOT_FINITE]


def test_likely_outcomes_are_listed_first(tmp_path):
    names = (b"loss", b"rollout/return", b"eval/return", b"step")
    (table,) = read_file(write(tmp_path, *(scalar(1, name, 1) for name in names)))
    assert table.outcomes == ("eval/return", "rollout/return", "loss", "step")
    assert table.roles == {"step": "step of the event"}


def test_damage_within_an_event_file_is_refused(tmp_path):
    damaged_record = bytearray(scalar(1, b"a", 1))
    damaged_record[3] = 1
    with pytest.raises(UsageError, match=r"a TensorBoard event file, is damaged: a wrong checksum at byte 31$"):
        read_file(write(tmp_path, bytes(damaged_record), scalar(2, b"a", 1)))
