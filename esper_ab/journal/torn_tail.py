"""An unfinished end of a journal is cut off and kept in a file of its own."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from pathlib import Path

from esper_ab.contracts.files_below import remove_below, sync_folder, write_all
from esper_ab.contracts.regular_file import open_regular
from esper_ab.journal.lock import JOURNAL_NAME

_COPY_BYTES = 1 << 20


def cut_off(experiment_dir: Path, offset: int, lines: int) -> Path:
    """Truncate the journal to its first `offset` bytes, which hold `lines` lines; return the file that keeps the rest.

    The rest is on disk before the journal is truncated, so it is never lost. If OSError is raised, the journal is
    unchanged.
    """
    kept_file, descriptor = _new_file(experiment_dir, f"{JOURNAL_NAME}.torn-{lines}")
    with os.fdopen(open_regular(experiment_dir / JOURNAL_NAME, os.O_RDWR), "r+b") as journal:
        try:
            journal.seek(offset)
            while part := journal.read(_COPY_BYTES):
                write_all(descriptor, part)
            os.fsync(descriptor)
            sync_folder(experiment_dir)
        except OSError:
            remove_below(experiment_dir, kept_file.name)
            raise
        finally:
            os.close(descriptor)
        journal.truncate(offset)
        os.fsync(journal.fileno())
    return kept_file


def _new_file(folder: Path, name: str) -> tuple[Path, int]:
    """Create the first of NAME, NAME.1, NAME.2, … that does not exist; return its path and descriptor."""
    for count in itertools.count():
        path = folder / (f"{name}.{count}" if count else name)
        with suppress(FileExistsError):
            return path, open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    raise AssertionError("counting does not end")
