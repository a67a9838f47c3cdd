"""Kinds of task: what decides which entry of workers/kinds makes a run."""

from __future__ import annotations

GROWTH = "growth"


def kind_of(task: str) -> str:
    """Return the kind of a task as it is written in plans."""
    return GROWTH
