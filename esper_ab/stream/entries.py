"""What a ledger records, one entry per line. Together they say everything that a decision rests on."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from esper_ab.stream.question import StreamQuestion

Decision = Literal["accepted", "rejected", "undecided", "failed", "given up"]


class Setup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a group is trained with."""

    code: str = ""  # the commit with the files; "": the files of the working folder, as they are
    code_words: str = ""  # for users: "main (1a2b3c4)"
    tree: str = ""  # digest of the files of the commit
    inside: str = ""  # the folder in which runs work, relative to the commit's top
    settings: dict[str, Any] = {}  # of this group alone, by key

    @property
    def identity(self) -> tuple[str, str, bytes]:
        """What equal setups have in common."""
        return self.tree, self.inside, msgspec.json.encode(self.settings, order="sorted")


class Opened(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="opened"):
    """The stream was made."""

    question: StreamQuestion
    incumbent: Setup
    unchanged: dict[str, str]  # digest of every file that candidates must not change, by path
    versions: dict[str, str]


class IncumbentMeasured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="measured"):
    """Runs of an incumbent alone, on fresh seeds."""

    incumbent: int  # number of the candidate that became it; 0: the first
    experiment: str
    rng_seed: int
    outcomes: tuple[float, ...]


class Begun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="begun"):
    """A candidate is compared with the incumbent; from now on its level is spent."""

    number: int
    incumbent: int
    setup: Setup
    note: str
    level: float
    experiment: str
    rng_seed: int


class Decided(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="decided"):
    """What a candidate came to."""

    number: int
    decision: Decision
    reason: str
    look: int  # seeds of each, of which pairs may be lost
    pairs: tuple[tuple[float, float], ...]  # outcomes of incumbent and candidate, by seed
    effect: float | None = None  # candidate minus incumbent, in the outcome's unit
    interval: tuple[float, float] | None = None
    p: float | None = None  # one-sided
    signs_p: float | None = None
    e_value: float = 0.0  # evidence for any shape; of the t and the signs, 1 / level if it is accepted


class Refused(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="refused"):
    """A candidate that was not compared, which costs nothing."""

    setup: Setup
    note: str
    reason: str
    failed: bool = False  # its rehearsal failed; else it changes what must stay as it is, or is the incumbent


Entry = Opened | IncumbentMeasured | Begun | Decided | Refused
