"""Limits are measured by a clock that nobody sets: whoever steps the time of day, by hand or by NTP, ends no run."""

from __future__ import annotations

import ast

from house.sources import breaking, calls

# Where the time of day is asked for: what it is written into, or the times of files that it is compared with.
ASKED_FOR = {
    "esper_ab/api/declared.py": "the date in an experiment's name",
    "esper_ab/execution/experiment.py": "the time in an experiment's name",
    "esper_ab/journal/file.py": "the stamp of a line",
    "esper_ab/journal/lock.py": "since when the holder has it",
    "esper_ab/live/console.py": "the stamp of a line",
    "esper_ab/live/on_stderr.py": "the stamp of a line",
    "esper_ab/report/page.py": "when the page was written",
    "esper_ab/commands/_removable.py": "the age of temporary files, which `tidy` removes",
}
WALL = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today"}


def asks(source: str) -> bool:
    """Whether the time of day is asked for."""
    called = {ast.unparse(call.func) for call in calls(source)}
    return bool(called & WALL)


def test_the_time_of_day_is_asked_for_where_it_is_written_down_only() -> None:
    assert breaking(asks) == ASKED_FOR.keys()
