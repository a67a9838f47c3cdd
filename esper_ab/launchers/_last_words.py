"""What a worker on another node has written to standard error, added to its log here."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from esper_ab.contracts.below import open_below
from esper_ab.contracts.messages import WorkerOrder


def note(order: WorkerOrder, complaint: bytes) -> None:
    """Append `complaint` to the log of the order's worker, if that can be written."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with suppress(OSError), os.fdopen(open_below(Path(order.experiment_dir), order.log_file, flags), "ab") as log:
        log.write(complaint)
