"""A damaged line is never read as an event; the error names the line and the number of intact lines."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.journals.short_journal import EVENTS, write

from esper_ab.contracts.errors import JournalError
from esper_ab.journal import reading as reading_module
from esper_ab.journal import tail as tail_module
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import OtherVersion, Reading, read
from esper_ab.journal.tail import follow


def test_an_intact_line_of_another_journal_is_refused(path, tmp_path_factory):
    """Its number and CRC are right, but it follows another line."""
    release = MilestoneReleased(replicate=1, milestone=0, runs=("a/1",))
    other_journal = write(tmp_path_factory.mktemp("other"), [release, *EVENTS[1:]])
    first_line, *later_lines = other_journal.read_bytes().splitlines(keepends=True)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + b"".join(later_lines))
    journal_reading = read(path)
    assert next(journal_reading) == EVENTS[0]
    with pytest.raises(
        JournalError, match=f"line 2: it is line n=1 after {json.loads(first_line)['crc']}; expected n=1"
    ):
        next(journal_reading)


def test_a_journal_of_zero_bytes_is_damaged(path):
    """A power cut may leave a file of the old length filled with zeros."""
    path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(JournalError, match="line 1: it contains zero bytes, as after a power cut"):
        next(read(path))


@pytest.mark.parametrize("reader", [read, follow])
def test_an_endless_line_is_reported_as_damage(path, monkeypatch, reader):
    """A sparse file may be larger than the memory and small in an archive."""
    longest_line = max(map(len, path.read_bytes().splitlines(keepends=True)))
    for module in (reading_module, tail_module):
        monkeypatch.setattr(module, "LONGEST_LINE_BYTES", longest_line)
    assert list(reader(path)) == EVENTS
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + (64 << 30))
    with pytest.raises(JournalError, match=f"line {len(EVENTS) + 1}: it is longer than 0 MiB"):
        list(reader(path))


def test_a_flipped_bit_is_never_read_as_an_event(path, journal_bytes):
    """Nor is one in the last newline, before which the line is whole."""
    for offset in range(len(journal_bytes)):
        damaged_bytes = bytearray(journal_bytes)
        damaged_bytes[offset] ^= 1 << (offset % 8)
        path.write_bytes(damaged_bytes)
        with pytest.raises(JournalError, match=f"line {1 + journal_bytes[:offset].count(10)}:"):
            list(read(path))


@given(st.lists(st.integers(0, len(EVENTS) - 1), min_size=1, max_size=len(EVENTS) + 2))
def test_moved_removed_or_repeated_lines_are_refused(tmp_path_factory, chosen_lines):
    path = write(tmp_path_factory.mktemp("moved"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[i] for i in chosen_lines))
    if chosen_lines == list(range(len(chosen_lines))):
        assert list(read(path)) == EVENTS[: len(chosen_lines)]
    else:
        with pytest.raises(JournalError, match="expected n="):
            list(read(path))


def test_reading_a_journal_counts_its_lines_and_bytes(path, journal_bytes):
    path.write_bytes(journal_bytes + b"torn")
    journal_reading = read(path)
    lines = journal_bytes.splitlines(keepends=True)
    for number in range(len(EVENTS) + 1):
        whole = b"".join(lines[:number])
        assert (journal_reading.lines, journal_reading.intact_bytes, journal_reading.torn_bytes) == (
            number,
            len(whole),
            0,
        )
        assert journal_reading.last_crc.encode() == (whole[-11:-3] or b"00000000")
        next(journal_reading, None)
    assert journal_reading.torn_bytes == len("torn")
    misfit = str(journal_reading.misfit("it is odd"))
    assert misfit == f"{path}, line 3: intact, but it is odd: not a journal of esper_ab"


@pytest.mark.parametrize("damaged_line", [0, 1, 2])
def test_damage_is_reported_with_the_number_of_intact_journal_lines(path, damaged_line):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[damaged_line] = lines[damaged_line].replace(b'"event":', b'"event" :')
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError) as error:
        list(read(path))
    assert str(error.value) == (
        f"{path}, line {damaged_line + 1}: its CRC does not match its contents; "
        f"the {damaged_line} before it are intact; "
        f"`esper-ab tidy {path.parent} --check` shows what can be recovered"
    )


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (b'{"kind":"mood"}', r"line 1: intact, but unknown to this version of esper_ab .*the version that"),
        (b'{"kind":"released","mood":1,"replicate":0,"milestone":0,"runs":[]}', "line 1: .*unknown field `mood`"),
        (
            b'{"kind":"experiment_started","schema":1,"versions":{"esper_ab":"0.1.0"}}',
            r"was written by esper_ab 0\.1\.0: read it with that version",
        ),
    ],
)
def test_an_unknown_event_is_refused_in_one_line(tmp_path, event, words):
    body = b'{"n":0,"prev":"00000000","t":"2026-01-31T10:15:00.123+00:00","event":%b' % event
    line = b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))
    with pytest.raises(OtherVersion, match=words) as error:
        next(Reading(tmp_path / JOURNAL_NAME, iter([line])))
    assert "\n" not in str(error.value)
