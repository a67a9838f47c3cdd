"""Structs with only those fields of a journal line that the columns need; skipping the rest makes decoding faster.

A writer gives all its lines the same fields, so it suffices to decode one episode with seed events of each writer
completely.
"""

from __future__ import annotations

import msgspec

from esper_ab.contracts.records import Checkpoint, Index, Moments, PPOUpdate
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.line import Stamp


class Lean(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of partial structs; unlike a record they skip unknown fields."""


class LeanRun(Lean, frozen=True, kw_only=True):
    """The fields of a RunRef that the columns need."""

    name: str


class LeanEnv(Lean, frozen=True, kw_only=True):
    """The fields of an EnvEpisode that the columns need."""

    steps: int
    outcome: float | None
    reward_sum: float | None
    failed: bool
    measures: dict[str, float | None]


class LeanTiming(Lean, frozen=True, kw_only=True):
    """The fields of a Timing that the columns need."""

    total_s: float


class LeanEpisode(Lean, frozen=True, kw_only=True):
    """The fields of an EpisodeRecord that the columns need."""

    run: LeanRun
    episode: Index
    envs: tuple[LeanEnv, ...]
    ppo: PPOUpdate | None
    timing: LeanTiming
    digest: str


class LeanRecorded(Lean, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="episode"):
    """An EpisodeRecorded event with a partial record."""

    record: LeanEpisode
    checkpoint: Checkpoint | None = None
    observations: Moments | msgspec.UnsetType = msgspec.UNSET


class LeanLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A journal line like line.Line, for the two most frequent kinds of event."""

    n: int
    prev: str
    t: Stamp
    event: LeanRecorded | MilestoneReleased
    crc: str


_decode = msgspec.json.Decoder(LeanLine).decode


def lean_line_of(data: bytes) -> LeanLine | None:
    """Decode a line without checking its CRC; None when it is of another kind or cannot be decoded."""
    try:
        return _decode(data)
    except UNREADABLE:
        return None
