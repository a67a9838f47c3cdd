"""A detached command that begins: it makes the directory that it is given, and a journal with one line."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from esper_ab.journal.file import Journal
from support import stand_in
from support.short_journal import EVENTS

if __name__ == "__main__":
    stand_in.die_with_parent()
    experiment_dir = Path(sys.argv[1])
    experiment_dir.mkdir()
    journal = Journal(experiment_dir)
    journal.append(EVENTS[0])
    journal.commit()
    signal.sigwait({signal.SIGUSR1})
