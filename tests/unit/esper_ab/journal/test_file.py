"""The journal on disk: what is written is read, whatever is cut off; nothing damaged is ever read as an event."""

from __future__ import annotations

import errno
import json
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.file_size import largest
from support.short_journal import EVENTS, fixed_clock, write

from esper_ab.contracts.errors import DiskFull, JournalError, UsageError
from esper_ab.contracts.wording import counted
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME, Journal, read
from esper_ab.journal.load import follow


def test_what_is_written_is_read(tmp_path):
    reading = read(write(tmp_path))
    assert list(reading) == EVENTS
    assert (reading.lines, reading.torn_bytes, reading.wall_time) == (3, 0, "2026-01-31T10:15:00.123+00:00")


def test_every_line_is_json_with_its_crc_and_its_predecessors(journal_bytes):
    prev = "00000000"
    for n, line in enumerate(journal_bytes.splitlines()):
        fields = json.loads(line)
        assert list(fields) == ["n", "prev", "t", "event", "crc"]
        assert (fields["n"], fields["prev"]) == (n, prev)
        checked = line[: line.index(b',"crc"')]
        assert fields["crc"] == f"{zlib.crc32(checked):08x}"
        prev = fields["crc"]


def test_a_journal_cut_at_any_byte_keeps_its_complete_lines(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    for cut in range(len(journal_bytes) + 1):
        path.write_bytes(journal_bytes[:cut])
        reading = read(path)
        complete = journal_bytes[:cut].count(b"\n")
        assert list(reading) == EVENTS[:complete]
        assert reading.torn_bytes == cut - (journal_bytes[:cut].rfind(b"\n") + 1)


def test_an_intact_line_of_another_journal_is_not_read_in_its_place(tmp_path, journal_bytes):
    """Its number and its CRC are right, and what it says comes after another line."""
    (tmp_path / "other").mkdir()
    other = write(tmp_path / "other", [MilestoneReleased(replicate=1, milestone=0, runs=("a/1",)), *EVENTS[1:]])
    first, *rest = other.read_bytes().splitlines(keepends=True)
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal_bytes.splitlines(keepends=True)[0] + b"".join(rest))
    reading = read(path)
    assert next(reading) == EVENTS[0]
    with pytest.raises(JournalError, match=f"line 2: it is line n=1 after {json.loads(first)['crc']}; expected n=1"):
        next(reading)


def test_a_journal_of_zero_bytes_is_damaged_and_not_empty(tmp_path, journal_bytes):
    """As a power cut may leave it: of its old length."""
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(b"\0" * len(journal_bytes))
    with pytest.raises(JournalError, match="line 1: it has zero bytes, as after a power cut"):
        next(read(path))


def test_a_flipped_bit_is_never_read_as_an_event(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    starts = [0, *(i + 1 for i, byte in enumerate(journal_bytes) if byte == ord("\n"))]
    for at in range(len(journal_bytes)):
        damaged = bytearray(journal_bytes)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        line = sum(start <= at for start in starts) - 1
        events, message = [], ""
        try:
            events.extend(read(path))
        except JournalError as error:
            message = str(error)
        assert f"line {line + 1}:" in message, "the last newline is no exception: all of its line is there"


def test_a_journal_cut_at_any_byte_goes_on_and_keeps_what_was_cut_off(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    for cut in range(len(journal_bytes) + 1):
        path.write_bytes(journal_bytes[:cut])
        journal, events = Journal.take_up(tmp_path, list, fixed_clock)
        whole = journal_bytes[:cut].count(b"\n")
        assert events == EVENTS[:whole]
        for event in EVENTS[whole:]:
            journal.append(event)
        journal.close()
        assert path.read_bytes() == journal_bytes
        kept = [torn.read_bytes() for torn in tmp_path.glob(f"{JOURNAL_NAME}.torn-*")]
        torn = journal_bytes[journal_bytes[:cut].rfind(b"\n") + 1 : cut]
        assert kept == ([torn] if torn else [])
        for torn in tmp_path.glob(f"{JOURNAL_NAME}.torn-*"):
            torn.unlink()


def test_a_second_torn_tail_at_the_same_line_does_not_replace_the_first(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    for cut in (10, 20):
        path.write_bytes(journal_bytes[:-cut])
        Journal.take_up(tmp_path, list)[0].close()
    assert len({torn.read_bytes() for torn in tmp_path.glob(f"{JOURNAL_NAME}.torn-2*")}) == 2


def test_a_damaged_journal_is_not_reopened_and_not_kept_locked(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    damaged = journal_bytes.replace(b"bad_message", b"bad_massage")
    path.write_bytes(damaged)
    for _ in range(2):
        with pytest.raises(JournalError, match=f"line 2: .*`esper-ab tidy {tmp_path} --check`"):
            Journal.take_up(tmp_path, list)
    assert path.read_bytes() == damaged
    assert list(tmp_path.glob("*.torn-*")) == []


@given(st.integers(0, len(EVENTS) - 1))
def test_a_line_that_is_there_twice_is_noticed(tmp_path_factory, which):
    folder = tmp_path_factory.mktemp("twice")
    lines = write(folder).read_bytes().splitlines(keepends=True)
    (folder / JOURNAL_NAME).write_bytes(b"".join([*lines[: which + 1], *lines[which:]]))
    with pytest.raises(JournalError, match=f"line {which + 2}: it is line n={which} "):
        list(read(folder / JOURNAL_NAME))


@given(st.permutations(range(len(EVENTS))), st.integers(1, len(EVENTS)))
def test_lines_moved_or_removed_are_noticed(tmp_path_factory, order, keep):
    folder = tmp_path_factory.mktemp("moved")
    lines = write(folder).read_bytes().splitlines(keepends=True)
    chosen = order[:keep]
    path = folder / JOURNAL_NAME
    path.write_bytes(b"".join(lines[i] for i in chosen))
    if list(chosen) == list(range(keep)):
        assert list(read(path)) == EVENTS[:keep]
    else:
        with pytest.raises(JournalError, match="expected n="):
            list(read(path))


def test_events_come_before_the_damage_is_reported(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal_bytes.replace(b"bad_message", b"bad_massage"))
    reading = read(path)
    assert next(reading) == EVENTS[0]
    with pytest.raises(JournalError, match=r"line 2: its CRC does not match.*esper-ab tidy"):
        next(reading)


def test_short_writes_are_completed(tmp_path, monkeypatch):
    write_some = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write_some(descriptor, bytes(data)[:7]))
    assert list(read(write(tmp_path))) == EVENTS


def test_a_full_disk_leaves_whole_lines_and_the_journal_usable(tmp_path):
    journal = Journal(tmp_path)
    journal.append(EVENTS[0])
    journal.write()
    size = (tmp_path / JOURNAL_NAME).stat().st_size
    journal.append(EVENTS[1])
    with largest(size + 20):
        for write_it in (journal.write, journal.commit):
            with pytest.raises(JournalError, match=r"cannot write .*its 1 line is intact"):
                write_it()
    assert (tmp_path / JOURNAL_NAME).stat().st_size == size
    journal.append(EVENTS[2])
    journal.close()
    assert list(read(tmp_path / JOURNAL_NAME)) == EVENTS


@pytest.mark.parametrize("room", [0, 1, 150, 600, 2_000])
def test_a_line_that_somebody_has_read_stays_when_the_disk_is_full(tmp_path, monkeypatch, room):
    """Whoever follows the journal goes on where he was, when another process has taken it up."""
    journal, path = Journal(tmp_path), tmp_path / JOURNAL_NAME
    journal.append(EVENTS[0])
    journal.commit()
    following, write_some = follow(path), os.write
    seen = list(following)
    for milestone in range(30):
        journal.append(MilestoneReleased(replicate=0, milestone=milestone, runs=("a/0", "b/0")))
    monkeypatch.setattr(os, "write", lambda *what: (write_some(*what), seen.extend(following))[0])
    with largest(path.stat().st_size + room), pytest.raises(JournalError) as error:
        journal.close()
    assert list(read(path)) == seen
    assert f" its {counted(len(seen), 'line')} {'is' if len(seen) == 1 else 'are'} intact" in str(error.value)
    again, past = Journal.take_up(tmp_path, list, fixed_clock)
    for event in EVENTS:
        again.append(event)
    again.close()
    assert [*seen, *following] == [*past, *EVENTS]


@pytest.mark.parametrize("count", [15, 16, 17, 40])
def test_lines_appended_are_in_the_file_once_they_are_written(tmp_path, count):
    journal = Journal(tmp_path)
    for _ in range(count):
        journal.append(EVENTS[0])
    journal.write()
    assert list(read(tmp_path / JOURNAL_NAME)) == [EVENTS[0]] * count
    journal.close()
    assert list(read(tmp_path / JOURNAL_NAME)) == [EVENTS[0]] * count


def test_lines_whose_sync_failed_are_written_anew(tmp_path, monkeypatch):
    """The kernel reports a failed sync once and may drop what it could not write: here it drops everything."""
    journal = Journal(tmp_path, fixed_clock)
    journal.append(EVENTS[0])
    journal.commit()
    committed = (tmp_path / JOURNAL_NAME).stat().st_size
    sync = os.fdatasync

    def fails_once(descriptor):
        monkeypatch.setattr(os, "fdatasync", sync)
        size = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, committed)
        os.ftruncate(descriptor, size)  # zeroes
        raise OSError(errno.ENOSPC, "No space left on device")

    journal.append(EVENTS[1])
    monkeypatch.setattr(os, "fdatasync", fails_once)
    with pytest.raises(DiskFull, match=r"its 2 lines are intact: make room, then `esper-ab resume "):
        journal.commit()
    journal.append(EVENTS[2])
    journal.close()
    assert list(read(tmp_path / JOURNAL_NAME)) == EVENTS


def test_a_used_experiment_directory_is_refused(tmp_path):
    write(tmp_path)
    with pytest.raises(UsageError, match="choose another name"):
        Journal(tmp_path)


def test_no_journal_is_a_usage_error(tmp_path):
    (tmp_path / "night").mkdir()
    write(tmp_path / "night")
    with pytest.raises(UsageError, match=r"did you mean .*night"):
        read(tmp_path / "nihgt" / JOURNAL_NAME)
    with pytest.raises(UsageError, match="no journal at"):
        read(Path(tmp_path) / JOURNAL_NAME)


@pytest.mark.parametrize(("number", "kind", "words"), [
    (errno.ENOSPC, DiskFull, "its 2 lines are intact: make room, then `esper-ab resume {there}`"),
    (errno.EIO, JournalError, "its 2 lines are intact"),
])  # fmt: skip
def test_a_torn_tail_that_cannot_be_kept_does_not_belittle_the_lines_before_it(
    tmp_path, monkeypatch, journal_bytes, number, kind, words
):
    lines = journal_bytes.splitlines(keepends=True)
    torn = b"".join(lines[:2]) + lines[2][:10]
    (tmp_path / JOURNAL_NAME).write_bytes(torn)

    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", fails)
    with pytest.raises(kind) as refused:
        Journal.take_up(tmp_path, list)
    assert str(refused.value).endswith(words.format(there=tmp_path))
    assert (tmp_path / JOURNAL_NAME).read_bytes() == torn
