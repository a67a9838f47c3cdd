"""The journal on disk: written lines can be read back after a cut at any byte.

Errors of writing, syncing and saving are reported, and leave the lines that were written intact.
"""

import errno
import os
import re
from datetime import UTC, datetime, timedelta

import pytest
from support.files.file_size import failing, file_size_limit
from support.journals.short_journal import EVENTS, complete, fixed_clock

from esper_ab.contracts.errors import DiskFull, JournalError, UsageError
from esper_ab.contracts.wording import counted
from esper_ab.journal import file as file_module
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME, Lock
from esper_ab.journal.reading import read
from esper_ab.journal.tail import follow


def test_a_line_too_long_for_readers_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(file_module, "LONGEST_LINE_BYTES", 50)
    journal = Journal(tmp_path, fixed_clock)
    with pytest.raises(UsageError, match=r"line 1 of .* would have 0 MiB, but readers accept at most 0 MiB"):
        journal.append(EVENTS[0])
    journal.close()
    assert (tmp_path / JOURNAL_NAME).read_bytes() == b""


def test_a_journal_cut_at_any_byte_can_be_continued(path, journal_bytes):
    whole_lines = [end for end, byte in enumerate(journal_bytes, 1) if byte == ord("\n")]
    for cut_byte in {*range(0, len(journal_bytes), 11), *(end + shift for end in whole_lines for shift in (-1, 0, 1))}:
        path.write_bytes(journal_bytes[:cut_byte])
        torn_bytes = journal_bytes[journal_bytes[:cut_byte].rfind(b"\n") + 1 : cut_byte]
        whole = journal_bytes[:cut_byte].count(b"\n")
        journal_reading = read(path)
        assert list(journal_reading) == EVENTS[:whole]
        assert journal_reading.torn_bytes == len(torn_bytes)
        journal, events = Journal.take_up(path.parent, list, fixed_clock)
        assert events == EVENTS[:whole]
        complete(journal, EVENTS[whole:])
        assert path.read_bytes() == journal_bytes
        tails = [*path.parent.glob(f"{JOURNAL_NAME}.torn-*")]
        assert [tail.read_bytes() for tail in tails] == ([torn_bytes] if torn_bytes else [])
        for tail in tails:
            tail.unlink()


def test_the_lock_of_a_refused_damaged_journal_is_released(path):
    damaged_bytes = path.read_bytes().replace(b"bad_message", b"bad_massage")
    path.write_bytes(damaged_bytes)
    for _ in range(2):
        with pytest.raises(JournalError, match=f"line 2: .*`esper-ab tidy {path.parent} --check`"):
            Journal.take_up(path.parent, list)
    assert path.read_bytes() == damaged_bytes
    assert list(path.parent.glob("*.torn-*")) == []


@pytest.mark.parametrize("room", [0, 1, 150, 600, 2_000])
def test_a_full_disk_removes_no_line_that_was_already_read(tmp_path, monkeypatch, room):
    """A reader that follows the journal continues after another process has reopened it."""
    journal = Journal(tmp_path)
    path = tmp_path / JOURNAL_NAME
    journal.append(EVENTS[0])
    journal.commit()
    follower = follow(path)
    write_some = os.write
    seen_events = list(follower)
    for milestone in range(30):
        journal.append(MilestoneReleased(replicate=0, milestone=milestone, runs=("a/0", "b/0")))
    monkeypatch.setattr(os, "write", lambda *arguments: (write_some(*arguments), seen_events.extend(follower))[0])
    with file_size_limit(path.stat().st_size + room), pytest.raises(JournalError) as error:
        journal.close()
    assert list(read(path)) == seen_events
    assert f" its {counted(len(seen_events), 'line')} {'is' if len(seen_events) == 1 else 'are'} intact" in str(
        error.value
    )
    assert "is as large as a file may be" in str(error.value)
    assert error.value.exit_code == 2  # no damage
    reopened_journal, past_events = Journal.take_up(tmp_path, list, fixed_clock)
    complete(reopened_journal)
    assert [*seen_events, *follower] == [*past_events, *EVENTS]


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, DiskFull, "its 2 lines are intact: free some space, then `esper-ab resume {folder}`"),
        (errno.EIO, JournalError, "its 2 lines are intact"),
    ],
)
def test_an_error_while_saving_a_torn_tail_states_the_number_of_intact_lines(path, monkeypatch, number, kind, words):
    lines = path.read_bytes().splitlines(keepends=True)
    torn_bytes = b"".join(lines[:2]) + lines[2][:10]
    path.write_bytes(torn_bytes)
    monkeypatch.setattr(os, "write", failing(number))
    with pytest.raises(kind, match=f"{re.escape(words.format(folder=path.parent))}$"):
        Journal.take_up(path.parent, list)
    assert path.read_bytes() == torn_bytes
    assert {file.name for file in path.parent.iterdir()} == {".lock", JOURNAL_NAME}


def test_journal_lines_are_stamped_by_the_clock_of_the_machine(tmp_path):
    start_time = datetime.now(UTC)
    complete(Journal(tmp_path), EVENTS[:1])
    journal_reading = read(tmp_path / JOURNAL_NAME)
    assert journal_reading.wall_time == ""
    assert list(journal_reading) == EVENTS[:1]
    stamp = datetime.fromisoformat(journal_reading.wall_time)
    assert start_time - timedelta(milliseconds=1) <= stamp <= datetime.now(UTC)


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
def test_a_journal_that_cannot_be_created_holds_no_lock(tmp_path, monkeypatch, number, kind, words):
    monkeypatch.setattr(file_module, "sync_folder", failing(number, times=1))
    with pytest.raises(kind, match=f"^{re.escape(words.format(path=tmp_path / JOURNAL_NAME))}$"):
        Journal(tmp_path)
    Lock(tmp_path).close()


def test_every_commit_syncs_the_file_once(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    synced_sizes = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (sync(file), synced_sizes.append(os.fstat(file).st_size)))
    sizes = []
    for event in EVENTS:
        journal.append(event)
        journal.write()
        journal.commit()
        sizes.append((tmp_path / JOURNAL_NAME).stat().st_size)
    assert synced_sizes == sizes
    journal.close()


@pytest.mark.parametrize("call", ["fdatasync", "fsync"])
def test_a_failed_sync_is_reported_even_without_fdatasync(tmp_path, monkeypatch, call):
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
def unwritten(tmp_path):
    """Return a journal with one appended event that is not yet written, and its path."""
    journal = Journal(tmp_path, fixed_clock)
    journal.append(EVENTS[0])
    return journal, tmp_path / JOURNAL_NAME


def test_lines_after_a_failed_sync_are_rewritten_when_the_disk_has_room(unwritten, monkeypatch):
    """After the failed sync the disk is also full for a while."""
    journal, path = unwritten
    journal.commit()
    committed_bytes = path.stat().st_size
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
    with file_size_limit(committed_bytes + 30), pytest.raises(JournalError, match="its 1 line is intact"):
        journal.commit()
    complete(journal, EVENTS[2:])
    assert list(read(path)) == EVENTS


def test_a_partial_line_is_truncated_before_the_next_write(unwritten, monkeypatch):
    journal, path = unwritten
    with monkeypatch.context() as patch, file_size_limit(20):
        patch.setattr(os, "ftruncate", failing(errno.EIO))
        with pytest.raises(JournalError):
            journal.write()
    assert path.stat().st_size == 20
    complete(journal, EVENTS[1:])
    assert list(read(path)) == EVENTS


def test_the_journal_refuses_to_write_to_a_changed_file(unwritten):
    journal, path = unwritten
    journal.write()
    whole = path.read_bytes()
    path.write_bytes(whole + b"more")
    journal.append(EVENTS[1])
    cause = f"{path} was changed by other code, perhaps a reward function: the file"
    check = f"`esper-ab tidy {path.parent} --check` shows what can be recovered"
    message = f"{cause} has {len(whole) + 4} bytes instead of {len(whole)}; {check}"
    with pytest.raises(JournalError, match=f"^{re.escape(message)}$"):
        journal.write()
    assert path.read_bytes() == whole + b"more"
    path.unlink()
    with pytest.raises(JournalError, match=f"^{re.escape(str(path))} was removed while the experiment was running"):
        journal.close()
    Lock(path.parent).close()


def test_a_read_error_releases_the_lock(path, monkeypatch):
    def fold(events):
        next(events)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(JournalError, match=f"^cannot read {re.escape(str(path))}: Input/output error$"):
        Journal.take_up(path.parent, fold)
    Lock(path.parent).close()
