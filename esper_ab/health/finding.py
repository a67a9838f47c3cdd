"""One line of the doctor's report: the fact, whether an experiment tolerates it, and a remedy."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check. `problem`: a launch with the defaults fails here. `warning`: it runs, at a cost."""

    topic: str
    level: Level
    what: str
    remedy: str = ""  # one line; "" when none is needed


def ok(topic: str, what: str) -> Finding:
    """Make a finding that needs no action."""
    return Finding(topic=topic, level="ok", what=what)


def warning(topic: str, what: str, remedy: str) -> Finding:
    """Make a finding of something that works, at a cost."""
    return Finding(topic=topic, level="warning", what=what, remedy=remedy)


def problem(topic: str, what: str, remedy: str) -> Finding:
    """Make a finding of something that prevents a launch."""
    return Finding(topic=topic, level="problem", what=what, remedy=remedy)
