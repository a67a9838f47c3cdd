"""What a tracker is: the subjects that it hears of, and the calls that it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Scalar = bool | int | float | str
EndState = Literal["finished", "failed", "interrupted"]  # of a run, or of the experiment for the comparison
COMPARISON = "comparison"  # key of the subject that holds the experiment's results instead of a run


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One esper run, or the comparison; it becomes one run of a tracker."""

    key: str  # "shaped/0", or COMPARISON
    id: str  # 16 hexadecimal digits, the same whenever the journal is read
    group: str  # "" for the comparison
    tags: tuple[str, ...]
    settings: dict[str, Scalar]  # dotted keys
    began_ms: int  # Unix time


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """Final data of a subject."""

    step: int
    numbers: dict[str, float]
    words: dict[str, str]
    state: EndState
    at_ms: int  # Unix time


class Tracker(Protocol):
    """A tracking tool. Calls are idempotent: a call repeated in this process or a later one is stored once.

    A method may raise any exception. The tracker's process then ends with a one-line report, and nothing else is
    affected.
    """

    where: str  # address for the user to open or give to the tool; "" until known

    def begin(self, subject: Subject) -> None:
        """Begin a subject; called before any other call about it."""

    def log(self, subject: Subject, step: int, numbers: dict[str, float], time_ms: int) -> None:
        """Store the numbers of one training episode."""

    def conclude(self, subject: Subject, conclusion: Conclusion) -> None:
        """Store a subject's final data. This ends a run; the comparison may be concluded again with more data."""

    def close(self) -> None:
        """Release all resources; called when the current end of the journal is reached."""
