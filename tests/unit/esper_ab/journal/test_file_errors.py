"""A journal in trouble: what cannot be written, synced or kept is told, and what was written stays as it is."""

from __future__ import annotations

import errno
import os
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.file_size import failing, largest
from support.short_journal import EVENTS, fixed_clock

from esper_ab.contracts.errors import DiskFull, JournalError
from esper_ab.journal import file as file_module
from esper_ab.journal.file import JOURNAL_NAME, Journal, OtherVersion, Reading, cut_off, read
from esper_ab.journal.lock import Lock


def test_lines_are_stamped_by_the_clock_of_the_machine(tmp_path):
    before = datetime.now(UTC)
    journal = Journal(tmp_path)
    journal.append(EVENTS[0])
    journal.close()
    reading = read(tmp_path / JOURNAL_NAME)
    assert reading.wall_time == ""
    assert list(reading) == EVENTS[:1]
    stamp = datetime.fromisoformat(reading.wall_time)
    assert before - timedelta(milliseconds=1) <= stamp <= datetime.now(UTC)


def test_a_reading_tells_how_far_it_is(tmp_path, journal_bytes):
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes + b"torn")
    reading, lines = read(tmp_path / JOURNAL_NAME), journal_bytes.splitlines(keepends=True)
    for number in range(len(EVENTS) + 1):
        whole = b"".join(lines[:number])
        assert (reading.lines, reading.intact_bytes, reading.torn_bytes) == (number, len(whole), 0)
        assert reading.last_crc.encode() == (whole[-11:-3] or b"00000000")
        next(reading, None)
    assert reading.torn_bytes == len("torn")
    assert str(reading.misfit("it is odd")) == (
        f"{tmp_path / JOURNAL_NAME}, line 3: intact, but it is odd: not a journal of esper_ab"
    )


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_damage_is_told_with_the_lines_that_are_intact(tmp_path, journal_bytes, damaged):
    lines = journal_bytes.splitlines(keepends=True)
    lines[damaged] = lines[damaged].replace(b'"event":', b'"event" :')
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError) as told:
        list(read(path))
    assert str(told.value) == (
        f"{path}, line {damaged + 1}: its CRC does not match its contents; the {damaged} before it are intact; "
        f"`esper-ab tidy {tmp_path} --check` shows what can be recovered"
    )


def line_of(event: bytes) -> bytes:
    body = b'{"n":0,"prev":"00000000","t":"2026-01-31T10:15:00.123+00:00","event":%b' % event
    return b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body))


@pytest.mark.parametrize(("event", "words"), [
    (b'{"kind":"mood"}', r"line 1: intact, but unknown to this version of esper_ab .*the version that"),
    (b'{"kind":"released","mood":1,"replicate":0,"milestone":0,"runs":[]}', "line 1: .*unknown field `mood`"),
    (b'{"kind":"experiment_started","schema":1,"versions":{"esper_ab":"0.1.0"}}',
     r"was written by esper_ab 0\.1\.0: read it with that version"),
])  # fmt: skip
def test_a_line_that_this_version_does_not_know_is_told_in_one_line(tmp_path, event, words):
    with pytest.raises(OtherVersion, match=words) as told:
        next(Reading(tmp_path / JOURNAL_NAME, iter([line_of(event)])))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("number", "kind", "words"), [
    (errno.ENOSPC, DiskFull, "no space on the disk for {path}; its 0 lines are intact: free some space, then run the "
                             "command again"),
    (errno.EIO, JournalError, "cannot write {path}: Input/output error; its 0 lines are intact"),
])  # fmt: skip
def test_a_journal_that_cannot_be_created_holds_nothing(tmp_path, monkeypatch, number, kind, words):
    monkeypatch.setattr(file_module, "sync_folder", failing(number, times=1))
    with pytest.raises(kind) as told:
        Journal(tmp_path)
    assert str(told.value) == words.format(path=tmp_path / JOURNAL_NAME)
    Lock(tmp_path).close()


def test_every_commit_is_forced_to_the_disk_once(tmp_path, monkeypatch):
    journal, synced, sync = Journal(tmp_path), [], os.fdatasync
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
    journal.append(EVENTS[1])
    journal.close()
    assert list(read(tmp_path / JOURNAL_NAME)) == EVENTS[:2]


def test_lines_in_doubt_are_written_anew_although_the_disk_is_full_meanwhile(tmp_path, monkeypatch):
    """A sync failed, so nothing is known of what it was to write; then there is no room to write it again."""
    journal, path = Journal(tmp_path, fixed_clock), tmp_path / JOURNAL_NAME
    journal.append(EVENTS[0])
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
    journal.append(EVENTS[2])
    journal.close()
    assert list(read(path)) == EVENTS


def test_a_part_of_a_line_that_cannot_be_taken_back_is_cut_off_before_the_next(tmp_path, monkeypatch):
    journal, path = Journal(tmp_path, fixed_clock), tmp_path / JOURNAL_NAME
    journal.append(EVENTS[0])
    with monkeypatch.context() as patch, largest(20):
        patch.setattr(os, "ftruncate", failing(errno.EIO))
        with pytest.raises(JournalError):
            journal.write()
    assert path.stat().st_size == 20
    for event in EVENTS[1:]:
        journal.append(event)
    journal.close()
    assert list(read(path)) == EVENTS


def test_a_journal_that_somebody_else_has_changed_is_not_written_to(tmp_path):
    journal, path = Journal(tmp_path, fixed_clock), tmp_path / JOURNAL_NAME
    journal.append(EVENTS[0])
    journal.write()
    whole = path.read_bytes()
    path.write_bytes(whole + b"more")
    journal.append(EVENTS[1])
    who = f"{path} was changed by other code, perhaps a reward function: the file"
    check = f"`esper-ab tidy {tmp_path} --check` shows what can be recovered"
    with pytest.raises(JournalError) as told:
        journal.write()
    assert str(told.value) == f"{who} has {len(whole) + 4} bytes instead of {len(whole)}; {check}"
    assert path.read_bytes() == whole + b"more"
    path.unlink()
    with pytest.raises(JournalError) as told:
        journal.close()
    assert str(told.value) == f"{who} was removed; {check}"
    Lock(tmp_path).close()


def test_what_is_cut_off_is_on_disk_before_the_journal_is_shortened(tmp_path, monkeypatch, journal_bytes):
    path, sync, synced = tmp_path / JOURNAL_NAME, os.fsync, []
    path.write_bytes(journal_bytes)

    def note(descriptor: int) -> None:
        sync(descriptor)
        synced.append((Path(f"/proc/self/fd/{descriptor}").resolve(), path.stat().st_size))

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(file_module, "sync_folder", lambda folder: synced.append((folder, path.stat().st_size)))
    kept = cut_off(tmp_path, 100, 0)
    whole = len(journal_bytes)
    assert synced == [(kept, whole), (tmp_path, whole), (path, 100)]
    assert (path.read_bytes(), kept.read_bytes()) == (journal_bytes[:100], journal_bytes[100:])


def test_every_tail_that_is_cut_off_has_a_file_of_its_own(tmp_path, monkeypatch, journal_bytes):
    monkeypatch.setattr(file_module, "_COPY_BYTES", 7)
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal_bytes)
    kept = [cut_off(tmp_path, at, lines) for at, lines in ((300, 1), (200, 0), (100, 0), (50, 0))]
    assert [one.name.removeprefix(JOURNAL_NAME) for one in kept] == [".torn-1", ".torn-0", ".torn-0.1", ".torn-0.2"]
    assert [one.read_bytes() for one in kept] == [
        journal_bytes[300:], journal_bytes[200:300], journal_bytes[100:200], journal_bytes[50:100]
    ]
    assert {one.stat().st_mode & 0o133 for one in kept} == {0}
