"""Whether an experiment has begun: whether a whole line of its journal is there."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.regular_file import open_to_read
from esper_ab.journal.lock import JOURNAL_NAME


def begun(experiment_dir: Path) -> bool:
    """Whether its journal has an event; without, there may be a folder: somebody was ended just before."""
    try:
        with open_to_read(experiment_dir / JOURNAL_NAME) as journal:
            return journal.readline().endswith(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return False
