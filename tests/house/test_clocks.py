"""Limits are measured by a clock that nobody sets: whoever steps the time of day, by hand or by NTP, ends no run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [path for package in ("esper_ab", "workers") for path in sorted((ROOT / package).rglob("*.py"))]
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
WALL = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}


def asks(source: str) -> bool:
    """Whether the time of day is asked for."""
    called = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [at for at in called if isinstance(at, ast.Attribute) and isinstance(at.value, ast.Name)]
    return any((at.value.id, at.attr) in WALL for at in named if isinstance(at.value, ast.Name))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_time_of_day_is_asked_for_where_it_is_written_down_only(path: Path) -> None:
    assert asks(path.read_text(encoding="utf-8")) is (str(path.relative_to(ROOT)) in ASKED_FOR)


def test_it_would_be_found() -> None:
    assert asks("import time\nlate = time.time() > limit")
    assert asks("from datetime import datetime, UTC\nprint(datetime.now(UTC))")
    assert not asks("import time\nlate = time.monotonic() > limit")
