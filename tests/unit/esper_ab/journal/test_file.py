"""The journal on disk: what is written is read, whatever is cut off; nothing damaged is ever read as an event.

What cannot be written, synced or kept is told, and what was written stays as it is.
"""

import errno
import json
import os
import re
import zlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.file_size import failing, largest
from support.short_journal import EVENTS, complete, fixed_clock, write

from esper_ab.contracts.errors import DiskFull, JournalError, UsageError
from esper_ab.contracts.wording import counted
from esper_ab.journal import file as file_module
from esper_ab.journal import tail as tail_module
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME, Journal, OtherVersion, Reading, read
from esper_ab.journal.lock import Lock
from esper_ab.journal.tail import follow


def test_an_intact_line_of_another_journal_is_not_read_in_its_place(path, tmp_path_factory):
    """Its number and its CRC are right, and what it says comes after another line."""
    released = MilestoneReleased(replicate=1, milestone=0, runs=("a/1",))
    other = write(tmp_path_factory.mktemp("other"), [released, *EVENTS[1:]])
    first, *rest = other.read_bytes().splitlines(keepends=True)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + b"".join(rest))
    reading = read(path)
    assert next(reading) == EVENTS[0]
    with pytest.raises(JournalError, match=f"line 2: it is line n=1 after {json.loads(first)['crc']}; expected n=1"):
        next(reading)


def test_a_journal_of_zero_bytes_is_damaged_and_not_empty(path):
    """As a power cut may leave it: of its old length."""
    path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(JournalError, match="line 1: it contains zero bytes, as after a power cut"):
        next(read(path))


@pytest.mark.parametrize("reader", [read, follow])
def test_a_line_without_end_is_damage_and_is_not_read_to_its_end(path, monkeypatch, reader):
    """As in a sparse file, which may be longer than the memory, and takes no room in an archive."""
    longest = max(map(len, path.read_bytes().splitlines(keepends=True)))
    for module in (file_module, tail_module):
        monkeypatch.setattr(module, "LONGEST_LINE_BYTES", longest)
    assert list(reader(path)) == EVENTS
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + (64 << 30))
    with pytest.raises(JournalError, match=f"line {len(EVENTS) + 1}: it is longer than 0 MiB"):
        list(reader(path))


def test_no_line_is_written_that_readers_refuse(tmp_path, monkeypatch):
    monkeypatch.setattr(file_module, "LONGEST_LINE_BYTES", 50)
    journal = Journal(tmp_path, fixed_clock)
    with pytest.raises(UsageError, match=r"line 1 of .* would have 0 MiB, but readers accept at most 0 MiB"):
        journal.append(EVENTS[0])
    journal.close()
    assert (tmp_path / JOURNAL_NAME).read_bytes() == b""


def test_a_flipped_bit_is_never_read_as_an_event(path, journal_bytes):
    """Not even in the last newline: all of its line is there."""
    for at in range(len(journal_bytes)):
        damaged = bytearray(journal_bytes)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        with pytest.raises(JournalError, match=f"line {1 + journal_bytes[:at].count(10)}:"):
            list(read(path))


def test_a_journal_cut_at_any_byte_goes_on_and_keeps_what_was_cut_off(path, journal_bytes):
    whole_lines = [at for at, byte in enumerate(journal_bytes, 1) if byte == ord("\n")]
    for cut in {*range(0, len(journal_bytes), 11), *(at + by for at in whole_lines for by in (-1, 0, 1))}:
        path.write_bytes(journal_bytes[:cut])
        torn = journal_bytes[journal_bytes[:cut].rfind(b"\n") + 1 : cut]
        whole = journal_bytes[:cut].count(b"\n")
        reading = read(path)
        assert list(reading) == EVENTS[:whole]
        assert reading.torn_bytes == len(torn)
        journal, events = Journal.take_up(path.parent, list, fixed_clock)
        assert events == EVENTS[:whole]
        complete(journal, EVENTS[whole:])
        assert path.read_bytes() == journal_bytes
        kept = [*path.parent.glob(f"{JOURNAL_NAME}.torn-*")]
        assert [one.read_bytes() for one in kept] == ([torn] if torn else [])
        for one in kept:
            one.unlink()


def test_a_damaged_journal_is_not_reopened_and_not_kept_locked(path):
    damaged = path.read_bytes().replace(b"bad_message", b"bad_massage")
    path.write_bytes(damaged)
    for _ in range(2):
        with pytest.raises(JournalError, match=f"line 2: .*`esper-ab tidy {path.parent} --check`"):
            Journal.take_up(path.parent, list)
    assert path.read_bytes() == damaged
    assert list(path.parent.glob("*.torn-*")) == []


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
    journal = Journal(tmp_path)
    path = tmp_path / JOURNAL_NAME
    journal.append(EVENTS[0])
    journal.commit()
    following = follow(path)
    write_some = os.write
    seen = list(following)
    for milestone in range(30):
        journal.append(MilestoneReleased(replicate=0, milestone=milestone, runs=("a/0", "b/0")))
    monkeypatch.setattr(os, "write", lambda *what: (write_some(*what), seen.extend(following))[0])
    with largest(path.stat().st_size + room), pytest.raises(JournalError) as error:
        journal.close()
    assert list(read(path)) == seen
    assert f" its {counted(len(seen), 'line')} {'is' if len(seen) == 1 else 'are'} intact" in str(error.value)
    assert "is as large as a file may be" in str(error.value)
    assert error.value.exit_code == 2  # no damage
    again, past = Journal.take_up(tmp_path, list, fixed_clock)
    complete(again)
    assert [*seen, *following] == [*past, *EVENTS]


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, DiskFull, "its 2 lines are intact: free some space, then `esper-ab resume {there}`"),
        (errno.EIO, JournalError, "its 2 lines are intact"),
    ],
)
def test_a_torn_tail_that_cannot_be_kept_does_not_belittle_the_lines_before_it(path, monkeypatch, number, kind, words):
    lines = path.read_bytes().splitlines(keepends=True)
    torn = b"".join(lines[:2]) + lines[2][:10]
    path.write_bytes(torn)
    monkeypatch.setattr(os, "write", failing(number))
    with pytest.raises(kind, match=f"{re.escape(words.format(there=path.parent))}$"):
        Journal.take_up(path.parent, list)
    assert path.read_bytes() == torn
    assert {one.name for one in path.parent.iterdir()} == {".lock", JOURNAL_NAME}


def test_lines_are_stamped_by_the_clock_of_the_machine(tmp_path):
    before = datetime.now(UTC)
    complete(Journal(tmp_path), EVENTS[:1])
    reading = read(tmp_path / JOURNAL_NAME)
    assert reading.wall_time == ""
    assert list(reading) == EVENTS[:1]
    stamp = datetime.fromisoformat(reading.wall_time)
    assert before - timedelta(milliseconds=1) <= stamp <= datetime.now(UTC)


def test_a_reading_tells_how_far_it_is(path, journal_bytes):
    path.write_bytes(journal_bytes + b"torn")
    reading = read(path)
    lines = journal_bytes.splitlines(keepends=True)
    for number in range(len(EVENTS) + 1):
        whole = b"".join(lines[:number])
        assert (reading.lines, reading.intact_bytes, reading.torn_bytes) == (number, len(whole), 0)
        assert reading.last_crc.encode() == (whole[-11:-3] or b"00000000")
        next(reading, None)
    assert reading.torn_bytes == len("torn")
    misfit = str(reading.misfit("it is odd"))
    assert misfit == f"{path}, line 3: intact, but it is odd: not a journal of esper_ab"


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_damage_is_told_with_the_lines_that_are_intact(path, damaged):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[damaged] = lines[damaged].replace(b'"event":', b'"event" :')
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError) as told:
        list(read(path))
    assert str(told.value) == (
        f"{path}, line {damaged + 1}: its CRC does not match its contents; the {damaged} before it are intact; "
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
def test_a_line_that_this_version_does_not_know_is_told_in_one_line(tmp_path, event, words):
    body = b'{"n":0,"prev":"00000000","t":"2026-01-31T10:15:00.123+00:00","event":%b' % event
    line = b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))
    with pytest.raises(OtherVersion, match=words) as told:
        next(Reading(tmp_path / JOURNAL_NAME, iter([line])))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (
            errno.ENOSPC,
            DiskFull,
            "no space on the disk for {path}; its 0 lines are intact: free some space, then run the command again",
        ),
        (errno.EIO, JournalError, "cannot write {path}: Input/output error; its 0 lines are intact"),
    ],
)
def test_a_journal_that_cannot_be_created_holds_nothing(tmp_path, monkeypatch, number, kind, words):
    monkeypatch.setattr(file_module, "sync_folder", failing(number, times=1))
    with pytest.raises(kind, match=f"^{re.escape(words.format(path=tmp_path / JOURNAL_NAME))}$"):
        Journal(tmp_path)
    Lock(tmp_path).close()


def test_every_commit_is_forced_to_the_disk_once(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    synced = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (sync(file), synced.append(os.fstat(file).st_size)))
    sizes = []
    for event in EVENTS:
        journal.append(event)
        journal.write()
        journal.commit()
        sizes.append((tmp_path / JOURNAL_NAME).stat().st_size)
    assert synced == sizes
    journal.close()


@pytest.mark.parametrize("call", ["fdatasync", "fsync"])
def test_whichever_sync_the_system_has_is_told_of_when_it_fails(tmp_path, monkeypatch, call):
    journal = Journal(tmp_path)
    if call == "fsync":
        monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, call, failing(errno.EIO, times=1))
    journal.append(EVENTS[0])
    with pytest.raises(JournalError, match=r"cannot write .*: Input/output error; its 1 line is intact"):
        journal.commit()
    complete(journal, EVENTS[1:])
    assert list(read(tmp_path / JOURNAL_NAME)) == EVENTS


@pytest.fixture
def begun(tmp_path):
    """A journal to which the first event was told, and which has written nothing."""
    journal = Journal(tmp_path, fixed_clock)
    journal.append(EVENTS[0])
    return journal, tmp_path / JOURNAL_NAME


def test_lines_in_doubt_are_written_anew_although_the_disk_is_full_meanwhile(begun, monkeypatch):
    """A sync failed, so nothing is known of what it was to write; then there is no room to write it again."""
    journal, path = begun
    journal.commit()
    committed = path.stat().st_size
    journal.append(EVENTS[1])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing(errno.ENOSPC))
        with pytest.raises(DiskFull):
            journal.commit()
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", failing(errno.EIO))
        for _ in range(2):
            with pytest.raises(JournalError, match="cannot write"):
                journal.write()
    with largest(committed + 30), pytest.raises(JournalError, match="its 1 line is intact"):
        journal.commit()
    complete(journal, EVENTS[2:])
    assert list(read(path)) == EVENTS


def test_a_part_of_a_line_that_cannot_be_taken_back_is_cut_off_before_the_next(begun, monkeypatch):
    journal, path = begun
    with monkeypatch.context() as patch, largest(20):
        patch.setattr(os, "ftruncate", failing(errno.EIO))
        with pytest.raises(JournalError):
            journal.write()
    assert path.stat().st_size == 20
    complete(journal, EVENTS[1:])
    assert list(read(path)) == EVENTS


def test_a_journal_that_somebody_else_has_changed_is_not_written_to(begun):
    journal, path = begun
    journal.write()
    whole = path.read_bytes()
    path.write_bytes(whole + b"more")
    journal.append(EVENTS[1])
    who = f"{path} was changed by other code, perhaps a reward function: the file"
    check = f"`esper-ab tidy {path.parent} --check` shows what can be recovered"
    told = f"{who} has {len(whole) + 4} bytes instead of {len(whole)}; {check}"
    with pytest.raises(JournalError, match=f"^{re.escape(told)}$"):
        journal.write()
    assert path.read_bytes() == whole + b"more"
    path.unlink()
    with pytest.raises(JournalError, match=f"^{re.escape(str(path))} was removed while the experiment was running"):
        journal.close()
    Lock(path.parent).close()


def test_an_error_of_reading_is_told_as_one_and_leaves_no_lock(path, monkeypatch):
    def fold(events):
        next(events)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(JournalError, match=f"^cannot read {re.escape(str(path))}: Input/output error$"):
        Journal.take_up(path.parent, fold)
    Lock(path.parent).close()
