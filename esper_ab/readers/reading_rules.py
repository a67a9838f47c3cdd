"""How the user wants files to be read. Types only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from esper_ab.readers.steps import StepRule


@dataclass(frozen=True, kw_only=True)
class ReadingRules:
    """How the user wants files to be read."""

    names: Mapping[str, str] = field(default_factory=dict)  # our name of a column -> the file's
    groups: tuple[str, ...] = ()  # columns of one group each
    runs: str = ""  # the pattern of the runs' names
    rows: str | None = None  # what a row is, "runs" or "items"; None: the columns tell
    control: str = ""  # a group, as the user calls it
    steps: StepRule = field(default_factory=StepRule)
