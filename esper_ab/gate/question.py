"""The question of a gate: what is trained in two states of the code, what it must show, and in how many minutes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from esper_ab.contracts.code_state import StateOfCode
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.plain_values import describe_value
from esper_ab.settings.references import References, read_references

GateClaim = Literal["not-worse", "better"]
BASE = "base"  # names of the groups
HEAD = "head"
_RELATIONS: Mapping[GateClaim, str] = {"not-worse": "not-worse-than", "better": "better-than"}
_NAME_CHARS = 12  # of the digest, in the name of a gate's directory


@dataclass(frozen=True, kw_only=True)
class GateQuestion:
    """Everything that a gate is asked. Its directory follows from all of it but `minutes` and what only costs time."""

    train: str  # a command, a Python trainer or a function, as `launch` takes it
    better: Literal["higher", "lower"]
    margin: float
    minutes: float  # of wall-clock time, for everything
    outcome: str = ""  # the name of the outcome that decides; "": the trainer's only one
    claim: GateClaim = "not-worse"
    base: str | None = None  # a commit or a folder; None: where head left the default branch
    head: str = "."
    settings: Mapping[str, Any] = field(default_factory=dict)  # of `launch`, by key, for both groups
    guardrails: tuple[str, ...] = ()
    run_seconds: float = 0.0  # how long a run takes; 0: as measured in earlier gates, else in the rehearsal
    undecided: Literal["fail", "pass"] = "fail"  # the exit status of a gate that could not decide
    references: Path | None = None  # folder of runs that are kept for later gates; None: none is kept
    references_limit: str | None = None  # size of that folder, as in 500MB

    def __post_init__(self) -> None:
        for name, expected, is_valid in (
            ("train", "a command, a Python trainer or a function", bool(self.train)),
            ("better", "higher or lower", self.better in ("higher", "lower")),
            ("margin", "a positive number", _is_positive(self.margin)),
            ("minutes", "a positive number", _is_positive(self.minutes)),
            ("claim", "not-worse or better", self.claim in _RELATIONS),
            ("base", "a commit or a folder", self.base != ""),
            ("head", "a commit or a folder", bool(self.head)),
            ("run_seconds", "a number of seconds", self.run_seconds == 0.0 or _is_positive(self.run_seconds)),
            ("undecided", "fail or pass", self.undecided in ("fail", "pass")),
        ):
            if not is_valid:
                raise UsageError(f"{name}: expected {expected}, not {describe_value(getattr(self, name))}")

    @property
    def kept_runs(self) -> References | None:
        """The folder of kept runs; UsageError if it is none, or its limit is no size."""
        return read_references(self.references, self.references_limit, ("references", "references_limit"))

    @property
    def requirement(self) -> str:
        """The requirement on the verdict, as `--fail-unless` takes it."""
        guarded = " with guardrails" if self.guardrails else ""
        return f"{HEAD} {_RELATIONS[self.claim]} {BASE}{guarded}"

    @property
    def subject_digest(self) -> str:
        """Digest of what is trained, measured and asked, whatever the states: equal for gates of one file."""
        return _digest(self._subject())

    def name(self, base: StateOfCode, head: StateOfCode) -> str:
        """Return the name of the directory of a gate between these two states."""
        states = [[state.sealed, state.inside] for state in (base, head)]
        return f"gate-{_digest([self._subject(), states])[:_NAME_CHARS]}"

    def _subject(self) -> list[Any]:
        settings = sorted((key, str(value)) for key, value in self.settings.items())
        subject = [self.train, self.outcome, self.better, float(self.margin), self.claim, self.guardrails]
        return [*subject, settings]


def _is_positive(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0.0 < number < math.inf


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()
