"""One line of the doctor's: what is there, whether an experiment can live with it, and what would help."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`problem`: a launch with the defaults is refused or fails here. `warning`: it runs, and there is a cost."""

    topic: str
    level: Level
    what: str
    remedy: str = ""  # one line; "" when nothing needs one


def ok(topic: str, what: str) -> Finding:
    """Nothing to do."""
    return Finding(topic=topic, level="ok", what=what)


def warning(topic: str, what: str, remedy: str) -> Finding:
    """It runs, and there is a cost."""
    return Finding(topic=topic, level="warning", what=what, remedy=remedy)


def problem(topic: str, what: str, remedy: str) -> Finding:
    """It does not run."""
    return Finding(topic=topic, level="problem", what=what, remedy=remedy)
