"""An unfinished end of a journal is saved in a file before the journal is truncated."""

import os
from pathlib import Path

from esper_ab.journal import torn_tail
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.torn_tail import cut_off


def test_a_torn_tail_is_saved_before_the_journal_is_truncated(path, monkeypatch, journal_bytes):
    sync = os.fsync
    synced_files = []
    folder = path.parent

    def record_sync(descriptor: int) -> None:
        sync(descriptor)
        synced_files.append((Path(f"/proc/self/fd/{descriptor}").resolve(), path.stat().st_size))

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(torn_tail, "sync_folder", lambda folder: synced_files.append((folder, path.stat().st_size)))
    saved_file = cut_off(folder, 100, 0)
    whole = len(journal_bytes)
    assert synced_files == [(saved_file, whole), (folder, whole), (path, 100)]
    assert (path.read_bytes(), saved_file.read_bytes()) == (journal_bytes[:100], journal_bytes[100:])


def test_every_torn_tail_is_saved_in_its_own_file(path, monkeypatch, journal_bytes):
    monkeypatch.setattr(torn_tail, "_COPY_BYTES", 7)
    saved_files = [cut_off(path.parent, offset, lines) for offset, lines in ((300, 1), (200, 0), (100, 0), (50, 0))]
    assert [file.name.removeprefix(JOURNAL_NAME) for file in saved_files] == [
        ".torn-1",
        ".torn-0",
        ".torn-0.1",
        ".torn-0.2",
    ]
    assert [file.read_bytes() for file in saved_files] == [
        journal_bytes[300:],
        journal_bytes[200:300],
        journal_bytes[100:200],
        journal_bytes[50:100],
    ]
    assert {file.stat().st_mode & 0o133 for file in saved_files} == {0}
