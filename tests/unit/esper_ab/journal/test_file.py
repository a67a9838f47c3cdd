"""The journal on disk: what is written is read, whatever is cut off; nothing damaged is ever read as an event."""

import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.file_size import failing, largest
from support.short_journal import EVENTS, fixed_clock, write

from esper_ab.contracts.errors import DiskFull, JournalError
from esper_ab.contracts.wording import counted
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME, Journal, read
from esper_ab.journal.load import follow


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
    with pytest.raises(JournalError, match="line 1: it contains zero bytes, as after a power cut"):
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
    path, whole_lines = tmp_path / JOURNAL_NAME, [at for at, byte in enumerate(journal_bytes, 1) if byte == ord("\n")]
    for cut in {*range(0, len(journal_bytes), 11), *(at + by for at in whole_lines for by in (-1, 0, 1))}:
        path.write_bytes(journal_bytes[:cut])
        torn = journal_bytes[journal_bytes[:cut].rfind(b"\n") + 1 : cut]
        reading = read(path)
        assert list(reading) == EVENTS[: journal_bytes[:cut].count(b"\n")]
        assert reading.torn_bytes == len(torn)
        journal, events = Journal.take_up(tmp_path, list, fixed_clock)
        whole = journal_bytes[:cut].count(b"\n")
        assert events == EVENTS[:whole]
        for event in EVENTS[whole:]:
            journal.append(event)
        journal.close()
        assert path.read_bytes() == journal_bytes
        kept = [torn.read_bytes() for torn in tmp_path.glob(f"{JOURNAL_NAME}.torn-*")]
        assert kept == ([torn] if torn else [])
        for torn in tmp_path.glob(f"{JOURNAL_NAME}.torn-*"):
            torn.unlink()


def test_a_damaged_journal_is_not_reopened_and_not_kept_locked(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    damaged = journal_bytes.replace(b"bad_message", b"bad_massage")
    path.write_bytes(damaged)
    for _ in range(2):
        with pytest.raises(JournalError, match=f"line 2: .*`esper-ab tidy {tmp_path} --check`"):
            Journal.take_up(tmp_path, list)
    assert path.read_bytes() == damaged
    assert list(tmp_path.glob("*.torn-*")) == []


@given(st.lists(st.integers(0, len(EVENTS) - 1), min_size=1, max_size=len(EVENTS) + 2))
def test_lines_moved_removed_or_repeated_are_noticed(tmp_path_factory, chosen):
    path = write(tmp_path_factory.mktemp("moved"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[i] for i in chosen))
    if chosen == list(range(len(chosen))):
        assert list(read(path)) == EVENTS[: len(chosen)]
    else:
        with pytest.raises(JournalError, match="expected n="):
            list(read(path))


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


@pytest.mark.parametrize(("number", "kind", "words"), [
    (errno.ENOSPC, DiskFull, "its 2 lines are intact: free some space, then `esper-ab resume {there}`"),
    (errno.EIO, JournalError, "its 2 lines are intact"),
])  # fmt: skip
def test_a_torn_tail_that_cannot_be_kept_does_not_belittle_the_lines_before_it(
    tmp_path, monkeypatch, journal_bytes, number, kind, words
):
    lines = journal_bytes.splitlines(keepends=True)
    torn = b"".join(lines[:2]) + lines[2][:10]
    (tmp_path / JOURNAL_NAME).write_bytes(torn)

    monkeypatch.setattr(os, "write", failing(number))
    with pytest.raises(kind) as refused:
        Journal.take_up(tmp_path, list)
    assert str(refused.value).endswith(words.format(there=tmp_path))
    assert (tmp_path / JOURNAL_NAME).read_bytes() == torn
    assert {one.name for one in tmp_path.iterdir()} == {".lock", JOURNAL_NAME}
