"""The form of a finding that is a note. Pure."""

from __future__ import annotations

from esper_ab.verdict.finding import Finding


def note_on(kind: str, sentence: str, *groups: str) -> Finding:
    return Finding(kind, "notes", groups, sentence)
