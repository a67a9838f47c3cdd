"""What the assertions of `esper_ab.testing` know of the session of pytest in which they are called, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class PytestSession:
    """The options of one session of pytest, and the answers of the test that runs."""

    directory: Path | None  # for the folders of experiments; None: pytest's temporary folder
    references: Path | None = None  # the folder of kept runs; None: none is kept
    references_limit: str | None = None  # the size of that folder, as in 500MB; None: the default
    make_temporary: Callable[[str], Path] | None = None  # makes a folder in pytest's temporary one; None: has none
    note: Callable[[str, str], None] | None = None  # adds headline and text of an answer to the report of the test


_sessions: list[PytestSession] = []  # the last one is the current one: tests of plugins start sessions within sessions


def begin(session: PytestSession) -> None:
    """Make `session` the current one."""
    _sessions.append(session)


def end(session: PytestSession) -> None:
    """Go back to the session before `session`."""
    _sessions.remove(session)


def current() -> PytestSession | None:
    """Return the current session; None outside pytest, or without the plugin."""
    return _sessions[-1] if _sessions else None
