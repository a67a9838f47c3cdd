"""The experiment that a launch replicates: the one whose own experiment.toml is launched again."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.events import ExperimentStarted
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.plan.plan import Plan


def plan_beside(settings_file: Path) -> Plan | None:
    """Return the plan of the experiment directory that holds `settings_file`; None if it is in none.

    A journal that cannot be read declares nothing: launching its settings again must work all the same.
    """
    path = settings_file.parent / JOURNAL_NAME
    if not path.is_file():
        return None
    try:
        first_event = next(read(path), None)
    except (JournalError, UsageError):
        return None
    return first_event.plan if isinstance(first_event, ExperimentStarted) else None
