"""An experiment has begun once its journal has a whole line."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.regular_file import open_to_read
from esper_ab.journal.line import LONGEST_LINE_BYTES
from esper_ab.journal.lock import JOURNAL_NAME


def begun(experiment_dir: Path) -> bool:
    """True if the experiment's journal has an event. A launch that is killed early leaves a folder without an event."""
    try:
        with open_to_read(experiment_dir / JOURNAL_NAME) as journal:
            return journal.readline(LONGEST_LINE_BYTES).endswith(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return False
