"""All messages between workers and coordinator. Changing one increments PROTOCOL; see docs/internals/protocol.md.

A run passes milestones: 0 = warm, 1 … E = training episode 0 … E-1 recorded, E+1 = evaluated.
`Release(milestone=p)` acknowledges milestone p and permits the work towards p+1.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from esper_ab.contracts.failure_cause import UNKNOWN, Cause
from esper_ab.contracts.message import Message
from esper_ab.contracts.records import (
    Checkpoint,
    Count,
    EpisodeRecord,
    EvaluationRecord,
    Index,
    RunRef,
    Seconds,
)
from esper_ab.contracts.worker_order import RunSpec

PROTOCOL = 24


class Hello(Message, frozen=True, kw_only=True, tag="Hello"):
    """First message of a worker: its lane, incarnation, protocol version and code hash."""

    worker: str
    incarnation: Count
    protocol: Count
    pid: Count
    uuids: tuple[str, ...]
    torch_version: str
    sources: str  # hash of the code that it imported (contracts/source_files.py)
    host: str = ""
    titles: tuple[str, ...] = ()  # product names of its devices as torch sees them, "" for CPU
    driver: str = ""  # of its GPUs; "" without any


class Ready(Message, frozen=True, kw_only=True, tag="Ready"):
    """The run has been warmed up at `milestone`: 0 for a new run, else the milestone of the restored checkpoint.

    `warm_up_s` is excluded from every record.
    """

    run: RunRef
    warm_up_s: Seconds
    milestone: Index = 0
    # One sentence per offered checkpoint that was damaged.
    damaged: Annotated[tuple[str, ...], Meta(max_length=16)] = ()


class Progress(Message, frozen=True, kw_only=True, tag="Progress"):
    """Heartbeat with the current step of the work towards the next milestone. Never journalled."""

    run: RunRef
    milestone: Index
    step: Count
    phase: Annotated[str, Meta(max_length=40)]  # "warm-up", "train", "update", "save", "evaluate", "disk full"


class EpisodeFinished(Message, frozen=True, kw_only=True, tag="EpisodeFinished"):
    """Record of a training episode, for milestones 1 … E. The worker keeps it until it is acknowledged by a Release."""

    run: RunRef
    record: EpisodeRecord
    checkpoint: Checkpoint | None = None  # None for a fixed controller, whose run has no state beyond its orders


class Evaluated(Message, frozen=True, kw_only=True, tag="Evaluated"):
    """Record of the evaluation, for milestone E+1; this is the last message about a run."""

    run: RunRef
    record: EvaluationRecord


class Failed(Message, frozen=True, kw_only=True, tag="Failed"):
    """The worker cannot continue. `summary` is one line; the log also has the traceback."""

    summary: str
    traceback: str  # "": users' code failed, and the summary says everything
    again: bool = True  # whether a retry with the same orders may succeed
    stops: bool = False  # whether all other runs would fail, too, until the user has mended something
    cause: Cause = UNKNOWN  # why the user's program failed; UNKNOWN: another reason


class Pong(Message, frozen=True, kw_only=True, tag="Pong"):
    """Answer to a Ping: the worker is alive and idle. Never journalled."""


class Assign(Message, frozen=True, kw_only=True, tag="Assign"):
    """Start this run: warm up, then answer Ready. With `milestone` > 0, resume the run after its last record.

    The run resumes from the first intact one of `checkpoints`, newest first. If none is intact, the run starts over.
    """

    spec: RunSpec
    milestone: int = 0  # the last recorded one
    checkpoints: tuple[Checkpoint, ...] = ()


class Release(Message, frozen=True, kw_only=True, tag="Release"):
    """`milestone` is on disk; continue towards the next one. At E+1 the run is done: await the next Assign."""

    run_name: str
    milestone: int


class Cancel(Message, frozen=True, kw_only=True, tag="Cancel"):
    """Give up the run, because its replicate cannot be completed, and await the next Assign."""

    run_name: str
    reason: str


class Ping(Message, frozen=True, kw_only=True, tag="Ping"):
    """Check an idle worker, which must answer Pong; without a Ping, its loss could go unnoticed."""


class Stop(Message, frozen=True, kw_only=True, tag="Stop"):
    """Exit. `reason` goes to the worker's log."""

    reason: str


WorkerMessage = Hello | Ready | Progress | EpisodeFinished | Evaluated | Failed | Pong
CoordinatorMessage = Assign | Release | Cancel | Ping | Stop
