"""One line of the doctor's report: the fact, whether an experiment tolerates it, and a remedy."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["ok", "warning", "problem"]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check. `problem`: a launch with the defaults fails here. `warning`: a launch works, at a cost."""

    topic: str
    level: Severity
    what: str
    remedy: str = ""  # one line; "" when none is needed


def ok(topic: str, state_words: str) -> Diagnosis:
    """Make a diagnosis that needs no action."""
    return Diagnosis(topic=topic, level="ok", what=state_words)


def warning(topic: str, state_words: str, remedy: str) -> Diagnosis:
    """Make a diagnosis of something that works, at a cost."""
    return Diagnosis(topic=topic, level="warning", what=state_words, remedy=remedy)


def problem(topic: str, state_words: str, remedy: str) -> Diagnosis:
    """Make a diagnosis of something that prevents a launch."""
    return Diagnosis(topic=topic, level="problem", what=state_words, remedy=remedy)
