"""What a tracker is told: of one run at a time, in the order of the journal. Types only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Scalar = bool | int | float | str
Name = Literal["wandb", "tensorboard", "mlflow"]
NAMES: tuple[Name, ...] = ("wandb", "tensorboard", "mlflow")
COMPARISON = "comparison"  # the subject that is no run: what the experiment came to


@dataclass(frozen=True, kw_only=True)
class TrackedExperiment:
    """What all subjects of one journal share."""

    name: str
    id: str  # 16 hexadecimal digits, the same whenever the journal is read
    description: str
    date: str  # YYYYMMDD, UTC: when it began


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One esper run, or the comparison: what becomes one run of a tracker."""

    key: str  # "shaped/0", or COMPARISON
    id: str  # 16 hexadecimal digits, the same whenever the journal is read
    group: str  # "" of the comparison
    tags: tuple[str, ...]
    settings: dict[str, Scalar]  # dotted keys
    began_ms: int  # Unix time


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """The last that is said of a subject."""

    step: int
    numbers: dict[str, float]
    words: dict[str, str]
    state: Literal["finished", "failed", "interrupted"]
    at_ms: int  # Unix time


class Tracker(Protocol):
    """Writes down what it is told. Told the same twice, in this process or a later one, it holds it once.

    Any method may raise anything: its process then ends, says so in one line, and nothing else is touched.
    """

    where: str  # what the user opens or gives to the tool; "" until known

    def begin(self, subject: Subject) -> None:
        """Before anything else of the subject."""

    def log(self, subject: Subject, step: int, numbers: dict[str, float], at_ms: int) -> None:
        """One training episode."""

    def conclude(self, subject: Subject, conclusion: Conclusion) -> None:
        """After it nothing more of a run; the comparison may be concluded anew, when there is more to compare."""

    def flush(self) -> None:
        """The end of a batch: what was told so far may now be seen by others."""

    def close(self) -> None:
        """The journal has come to an end, of its experiment or for now."""
