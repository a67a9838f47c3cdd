"""Lines that were cut off at the end of a ledger, which its chain cannot show: their experiments are still there.

A candidate's line is on disk before its experiment, and so is the decision with which it becomes the incumbent before
the experiment that measures it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.wording import counted
from esper_ab.stream.ledger import Ledger
from esper_ab.stream.outcomes import EXPERIMENTS
from esper_ab.stream.progress import StreamProgress, fold

_NAME = re.compile(r"(candidate|incumbent)-([0-9]+)")


def unrecorded_experiments(folder: Path, progress: StreamProgress) -> Iterator[str]:
    """Yield each experiment of a stream that no line of its ledger has announced, and why."""
    experiments_folder = folder / EXPERIMENTS
    names = (path.name for path in experiments_folder.iterdir()) if experiments_folder.is_dir() else ()
    matches = filter(None, map(_NAME.fullmatch, names))
    for kind, number_text in sorted((match.groups() for match in matches), key=lambda parts: (parts[0], int(parts[1]))):
        number = int(number_text)
        name = f"{EXPERIMENTS}/{kind}-{number_text}"
        if kind == "candidate" and number > len(progress.candidates):
            yield f"{name} is there, but the ledger has {counted(len(progress.candidates), 'candidate')}"
        elif kind == "incumbent" and number and not progress.has_accepted(number):
            yield f"{name} is there, but no line says that candidate {number} was accepted"


def refuse_cut_off(ledger: Ledger) -> None:
    """Raise JournalError if lines at the end of the ledger are missing: the next candidate's level rests on them."""
    for problem in unrecorded_experiments(ledger.folder, fold(ledger.entries)):
        raise JournalError(f"{ledger.path}: {problem}: its last lines were cut off; put back a copy of the ledger")
