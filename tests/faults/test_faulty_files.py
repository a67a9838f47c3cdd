"""The journal on a file system that fails like NFS, a full disk or a dying device, and then loses power.

`os` is patched: a write may be short or fail after some bytes; a sync may fail, and part of the unsynced bytes may be
lost. Laws: committed events are kept, once and in order; any further events are the next ones that were appended; and a
new coordinator can continue the journal.
"""

import errno
import os
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.errors import DiskFull, JournalError
from esper_ab.journal.events import Incident
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME

GIVE_UP = (errno.EIO, errno.ESTALE, errno.EROFS)
LATER = (errno.ENOSPC, errno.EDQUOT)
ACTS = ("append", "append", "append", "write", "commit", "commit", "crash")


def event(number):
    return Incident(category="disk_full", run_name="", episode=number, detail="x" * (7 * number % 50))


class FaultyFiles:
    """Faulty versions of three calls of `os` for the file of a journal; other files are unaffected."""

    def __init__(self, path, draw):
        self._path = path
        self._draw = draw
        self._real = {name: getattr(os, name) for name in ("write", "fdatasync", "ftruncate")}
        self.synced = 0  # bytes that a power cut leaves

    def _is_journal(self, descriptor):
        return os.path.samestat(os.fstat(descriptor), self._path.stat())

    def _fails(self, name):
        kind = self._draw(st.sampled_from(["no", "no", "later", "give up"]), label=name)
        if kind == "no":
            return
        number = self._draw(st.sampled_from(LATER if kind == "later" else GIVE_UP))
        raise OSError(number, os.strerror(number))

    def write(self, descriptor, data):
        if not self._is_journal(descriptor):
            return self._real["write"](descriptor, data)
        count = len(data)
        if self._draw(st.sampled_from(["whole", "whole", "whole", "short"])) == "short":
            count = self._draw(st.integers(0, len(data)), label="bytes written before anything fails")
        if count:
            self._real["write"](descriptor, bytes(data[:count]))
        if count < len(data):
            self._fails("write")
        return count

    def fdatasync(self, descriptor):
        try:
            self._fails("fdatasync")
        except OSError:  # the kernel has dropped the dirty pages: later reads return the bytes on the disk
            self._real["ftruncate"](descriptor, self._draw(st.integers(self.synced, os.fstat(descriptor).st_size)))
            raise
        self._real["fdatasync"](descriptor)
        self.synced = os.fstat(descriptor).st_size

    def ftruncate(self, descriptor, size):
        self._real["ftruncate"](descriptor, size)
        if self._is_journal(descriptor):
            self.synced = min(self.synced, size)

    def power_cut(self):
        os.truncate(self._path, self._draw(st.integers(self.synced, self._path.stat().st_size), label="left"))


def reopen_after_power_cut(folder, faulty_files, journal):
    """Cut the power; return the events that a new coordinator reads, and its journal."""
    os.close(journal._file)
    journal._lock.close()
    faulty_files.power_cut()
    reopened_journal, events = Journal.take_up(folder, list, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    faulty_files.synced = (folder / JOURNAL_NAME).stat().st_size
    return events, reopened_journal


def test_a_failed_close_of_the_journal_loses_no_event(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    journal.append(event(0))
    real_close = os.close

    def close_and_fail(descriptor):
        real_close(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))  # as on NFS, for bytes that are synced already

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", close_and_fail)
        journal.close()
    reopened_journal, events = Journal.take_up(tmp_path, list)
    reopened_journal.close()
    assert events == [event(0)]


@given(st.data())
def test_committed_events_survive_file_faults_in_order_without_duplicates(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("faulty")
    journal = Journal(folder, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    faulty_files = FaultyFiles(folder / JOURNAL_NAME, data.draw)
    appended_events = []
    committed_count = 0
    for act in [*data.draw(st.lists(st.sampled_from(ACTS), max_size=25)), "crash"]:
        crashed = act == "crash"
        if act == "append":
            appended_events.append(event(len(appended_events)))
            journal.append(appended_events[-1])
        elif not crashed:
            with pytest.MonkeyPatch.context() as patch, suppress(DiskFull):
                for name in ("write", "fdatasync", "ftruncate"):
                    patch.setattr(os, name, getattr(faulty_files, name))
                try:
                    getattr(journal, act)()
                    committed_count = len(appended_events) if act == "commit" else committed_count
                except JournalError:
                    crashed = True  # the coordinator ends
        if crashed:
            events, journal = reopen_after_power_cut(folder, faulty_files, journal)
            assert len(events) >= committed_count
            assert events == appended_events[: len(events)]
            appended_events = events
            committed_count = len(events)
    journal.close()
