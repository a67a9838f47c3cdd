"""A journal of three lines, written with a fixed clock."""

from datetime import UTC, datetime

from esper_ab.journal.events import Incident, MilestoneReleased
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME

EVENTS = [
    MilestoneReleased(replicate=0, milestone=0, runs=("a/0", "b/0")),
    Incident(category="bad_message", run_name="", episode=None, detail='quotes " and ünïcode, and\na newline'),
    MilestoneReleased(replicate=0, milestone=1, runs=("a/0", "b/0")),
]


def fixed_clock():
    return datetime(2026, 1, 31, 10, 15, 0, 123000, tzinfo=UTC)


def complete(journal, events=EVENTS):
    """Append the events to the journal and close it."""
    for event in events:
        journal.append(event)
    journal.close()


def write(folder, events=EVENTS):
    complete(Journal(folder, fixed_clock), events)
    return folder / JOURNAL_NAME
