"""What columns are made of, read from a line of the journal; the rest of an episode is passed over, which is faster.

Who wrote a line wrote all of it in one way: it is enough that one episode with seed events of each writer is read with
all it holds.
"""

from __future__ import annotations

import msgspec

from esper_ab.contracts.records import Checkpoint, Moments, PPOUpdate
from esper_ab.journal.events import PointReleased


class Lean(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base: unlike a record it knows only some of the fields."""


class LeanRun(Lean, frozen=True, kw_only=True):
    """Of a RunRef."""

    run: str


class LeanHost(Lean, frozen=True, kw_only=True):
    """Of an EnvEpisode."""

    steps: int
    final_accuracy: float
    reward_sum: float | None
    host_params: int
    params_added: int
    op_counts: tuple[int, ...]
    diverged: bool


class LeanTiming(Lean, frozen=True, kw_only=True):
    """Of a Timing."""

    total_s: float


class LeanEpisode(Lean, frozen=True, kw_only=True):
    """Of an EpisodeRecord."""

    run: LeanRun
    episode: int
    envs: tuple[LeanHost, ...]
    ppo: PPOUpdate | None
    timing: LeanTiming
    digest: str


class LeanRecorded(Lean, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="episode"):
    """As EpisodeRecorded."""

    record: LeanEpisode
    checkpoint: Checkpoint | None = None
    observations: Moments | msgspec.UnsetType = msgspec.UNSET


class LeanLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """As file.Line, of the two kinds that there are many of."""

    n: int
    prev: str
    t: str
    event: LeanRecorded | PointReleased
    crc: str


_decode = msgspec.json.Decoder(LeanLine).decode


def lean_line_of(data: bytes) -> LeanLine | None:
    """What a line says, whether or not its CRC is right; None when it is of another kind, or cannot be read."""
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return None
