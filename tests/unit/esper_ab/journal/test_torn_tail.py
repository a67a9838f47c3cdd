"""An unfinished end of a journal is kept in a file of its own before the journal is cut off."""

import os
from pathlib import Path

from esper_ab.journal import torn_tail
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.torn_tail import cut_off


def test_a_torn_tail_is_saved_before_the_journal_is_truncated(path, monkeypatch, journal_bytes):
    sync = os.fsync
    synced = []
    folder = path.parent

    def note(descriptor: int) -> None:
        sync(descriptor)
        synced.append((Path(f"/proc/self/fd/{descriptor}").resolve(), path.stat().st_size))

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(torn_tail, "sync_folder", lambda folder: synced.append((folder, path.stat().st_size)))
    kept = cut_off(folder, 100, 0)
    whole = len(journal_bytes)
    assert synced == [(kept, whole), (folder, whole), (path, 100)]
    assert (path.read_bytes(), kept.read_bytes()) == (journal_bytes[:100], journal_bytes[100:])


def test_every_tail_that_is_cut_off_has_a_file_of_its_own(path, monkeypatch, journal_bytes):
    monkeypatch.setattr(torn_tail, "_COPY_BYTES", 7)
    kept = [cut_off(path.parent, at, lines) for at, lines in ((300, 1), (200, 0), (100, 0), (50, 0))]
    assert [one.name.removeprefix(JOURNAL_NAME) for one in kept] == [".torn-1", ".torn-0", ".torn-0.1", ".torn-0.2"]
    assert [one.read_bytes() for one in kept] == [
        journal_bytes[300:],
        journal_bytes[200:300],
        journal_bytes[100:200],
        journal_bytes[50:100],
    ]
    assert {one.stat().st_mode & 0o133 for one in kept} == {0}
