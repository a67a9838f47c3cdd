"""The question of a stream of candidates: what is trained, what makes a candidate better, and at which error rate."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from esper_ab.stats.one_sided_looks import OneSidedTest

INCUMBENT = "incumbent"  # names of the groups
CANDIDATE = "candidate"
FIRST_LOOK = 4  # pairs; enough to stop for most candidates that are not better


class StreamQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that is sealed before the first candidate."""

    train: str  # a command, a Python trainer or a function, as `launch` takes it
    folder: str  # where the stream was made, which is where runs work
    better: Literal["higher", "lower"]
    outcome: str = ""  # the name of the outcome that decides; "": the trainer's only one
    margin: float = 0.0  # by how much a candidate must be better
    alpha: float = 0.05  # share of false discoveries over the whole stream, on average
    seeds: int = 20  # of a candidate, at most
    incumbent_seeds: int = 6  # runs of a new incumbent alone; 0: only those in later candidates' pairs
    shape: Literal["same", "any"] = (
        "same"  # any: decisions must hold whatever the shapes of the outcomes' distributions
    )
    outcome_range: tuple[float, float] | None = None  # possible outcomes; needed for any shape
    code: str = ""  # the incumbent's state of the code, as written; "": candidates differ in settings only
    unchanged: tuple[str, ...] = ()  # files and folders that no candidate may change
    settings: dict[str, Any] = {}  # of `launch`, by key, for both groups
    launcher: dict[str, Any] = {}  # what starts workers, as in a table [launcher]

    @property
    def sign(self) -> float:
        """1.0 if higher outcomes are better, else -1.0."""
        return 1.0 if self.better == "higher" else -1.0

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of pairs after which a candidate may be decided."""
        later_looks = (round(0.4 * self.seeds), round(0.7 * self.seeds))
        return (FIRST_LOOK, *(look for look in later_looks if FIRST_LOOK < look < self.seeds), self.seeds)

    def test(self, level: float) -> OneSidedTest:
        """Return the test of one candidate at its level."""
        size = None
        if self.shape == "any" and self.outcome_range is not None:
            size = self.outcome_range[1] - self.outcome_range[0]
        return OneSidedTest(looks=self.looks, margin=self.margin, level=level, alpha=self.alpha, size=size)
