"""The kinds of journal events and the format of a line. The journal is the only source of truth.

Every report is a fold of these events.
"""

from __future__ import annotations

import zlib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from esper_ab.contracts.files import UNREADABLE, open_to_read
from esper_ab.contracts.records import (
    Checkpoint,
    Count,
    EpisodeRecord,
    EvaluationRecord,
    Index,
    RunRef,
    Seconds,
    Sha256,
)
from esper_ab.design.design import Contrast
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.plan.plan import Extension, Plan


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Base of every journal event; `kind` in the file is the tag."""


class ExperimentStarted(Event, frozen=True, kw_only=True, tag="experiment_started"):
    """First line of every journal."""

    schema: int
    plan: Plan
    versions: dict[str, str]
    machine: dict[str, str]
    code: dict[str, str]  # sources (a hash); in a checkout also commit and dirty


class ExperimentContinued(Event, frozen=True, kw_only=True, tag="experiment_continued"):
    """A new coordinator continues the experiment; its versions, machine and code may differ from those at the start."""

    versions: dict[str, str]
    machine: dict[str, str]
    code: dict[str, str]


class WorkerStarted(Event, frozen=True, kw_only=True, tag="worker_started"):
    worker: str
    incarnation: Count
    device: str  # or devices, as in `RunRef`
    pid: Count
    uuids: tuple[str, ...]
    torch_version: str
    sources: str = ""  # hash of the code that it imported; "" in journals older than this field
    host: str = ""  # the machine's own name; "" in journals older than this field, like the fields below
    node: str = ""  # as the launcher calls it; "": the coordinator's machine
    titles: tuple[str, ...] = ()  # of the devices, "" for a core
    driver: str = ""  # of GPUs


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    run: RunRef
    worker: str
    incarnation: Count


class RunReady(Event, frozen=True, kw_only=True, tag="run_ready"):
    run: RunRef
    warm_up_s: Seconds
    milestone: Index = 0  # above 0 when the run was restored from a checkpoint


class EpisodeRecorded(Event, frozen=True, kw_only=True, tag="episode"):
    record: EpisodeRecord
    checkpoint: Checkpoint | None = None


class RunEvaluated(Event, frozen=True, kw_only=True, tag="evaluation"):
    record: EvaluationRecord


class MilestoneReleased(Event, frozen=True, kw_only=True, tag="released"):
    """All records of `milestone` are on disk, and the runs named in `runs` may go on."""

    replicate: Index  # names the block
    milestone: Index
    runs: tuple[str, ...]


class LookTaken(Event, frozen=True, kw_only=True, tag="look"):
    """An interim look by the plan's rule. The numbers of the look follow from the records before it."""

    replicates: Index  # complete replicates, which identify the look
    decided: tuple[Contrast, ...]  # at this look
    leaving: tuple[str, ...]  # groups without any open comparison; blocks that start after this look leave them out
    futile: tuple[Contrast, ...] = ()  # stopped for futility at this look, without any claim

    @property
    def outcome(self) -> str:
        """The result in words, as in "decided a - b; stopped for futility: a - c"."""
        decided, futile = (", ".join(f"{one.a} - {one.b}" for one in these) for these in (self.decided, self.futile))
        return f"decided {decided or 'nothing'}{f'; stopped for futility: {futile}' if futile else ''}"


class PlanExtended(Event, frozen=True, kw_only=True, tag="plan_extended"):
    """Blocks are added to the plan; from this event on, the rule of `extension.design` applies."""

    extension: Extension


class TrainerMended(Event, frozen=True, kw_only=True, tag="trainer_mended"):
    """A trainer's files were changed before any seed was complete; from this event on, runs use the new files."""

    sha256: Sha256
    before: tuple[str, ...]  # runs with records that were made with earlier files


class Incident(Event, frozen=True, kw_only=True, tag="incident"):
    """A possible confounder of the comparison, shown with the results."""

    category: Literal[
        "restart", "non_finite", "dropped_pair", "cancelled", "unequal_devices", "cold_start", "inexact_resume",
        "ppo_pathology", "worker_death", "hung_worker", "bad_message", "interrupted", "damaged_checkpoint", "disk_full",
        "start_delayed", "moved",
    ]
    run_name: str = ""  # "" when it concerns the whole experiment
    episode: Index | None = None
    detail: str
    last_words: tuple[str, ...] = ()  # last lines of a worker's log, with its stacks if it hung
    confounder: str | msgspec.UnsetType = msgspec.UNSET  # found in a training episode; entered once per run


class ExperimentEnded(Event, frozen=True, kw_only=True, tag="experiment_ended"):
    status: Literal["finished", "failed", "interrupted"]
    detail: str


AnyEvent = (
    ExperimentStarted | ExperimentContinued | WorkerStarted | RunStarted | RunReady | EpisodeRecorded | RunEvaluated
    | MilestoneReleased | LookTaken | PlanExtended | TrainerMended | Incident | ExperimentEnded
)
SCHEMA = 9


# --- line ------------------------------------------------------------------------------------------------------------
# Format of one journal line, for writers and readers: numbered, chained, with its CRC inside the JSON object.
#
# {"n":3,"prev":"8a698ba7","t":"2026-11-21T20:41:52.737+00:00","event":{"kind":"episode",…},"crc":"5d41402a"}


FIRST_PREV = "00000000"  # `prev` of the first line
_TAIL = b',"crc":"%08x"}\n'  # CRC over the bytes before it
_TAIL_BYTES = len(_TAIL % 0)
_CRC_IN_TAIL = slice(-11, -3)
LONGEST_LINE_BYTES = 256 << 20  # that is read; the first line, with the plan, has some kilobytes per run
_EPISODE, _KIND_WITHIN = b'"event":{"kind":"episode"', 120  # within this many bytes of the line's start


Stamp = Annotated[datetime, msgspec.Meta(tz=True)]  # time of a line; decoding it costs a hundredth of decoding the rest


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One line of a journal."""

    n: int
    prev: str
    t: Stamp
    event: AnyEvent
    crc: str


_decoder = msgspec.json.Decoder(Line)


class _Origin(msgspec.Struct, frozen=True):
    """The facts about the writer in the first line of a journal, whichever version of esper_ab wrote it."""

    schema: int
    versions: dict[str, str]


class _FirstLine(msgspec.Struct, frozen=True):
    event: _Origin


_decode_first = msgspec.json.Decoder(_FirstLine).decode


def stamp_text(stamp: datetime) -> str:
    """Format a time stamp as in journal lines: ISO 8601 with milliseconds."""
    return stamp.isoformat(timespec="milliseconds")


def written(n: int, prev: str, stamp: datetime, event: AnyEvent) -> tuple[bytes, str]:
    """Encode one line; return it and its CRC, which is the `prev` of the next line."""
    when, what = stamp_text(stamp).encode(), msgspec.json.encode(event)
    body = b'{"n":%d,"prev":"%s","t":"%s","event":%s' % (n, prev.encode(), when, what)
    tail = _TAIL % zlib.crc32(body)
    return body + tail, tail[_CRC_IN_TAIL].decode()


def wrong_tail(data: bytes) -> str:
    """Check that a line ends in the CRC of its contents. Returns what is wrong, or "" if nothing is."""
    if data.endswith(_TAIL % zlib.crc32(memoryview(data)[:-_TAIL_BYTES])):
        return ""
    digits = data[_CRC_IN_TAIL].decode(errors="replace")
    is_tail = data[-_TAIL_BYTES:] == b',"crc":"%s"}\n' % digits.encode()
    return "its CRC does not match its contents" if is_tail else "it does not end with a CRC"


def lost_newline(data: bytes) -> bool:
    """True if a line is intact except that its newline is a different byte. No writer leaves such a line."""
    return not data.endswith(b"\n") and wrong_tail(data[:-1] + b"\n") == ""


def decode(data: bytes) -> Line:
    """Decode a line without checking its CRC; MsgspecError if it is not a line of this version of esper_ab."""
    line = _decoder.decode(data)
    if isinstance(line.event, ExperimentStarted) and line.event.schema != SCHEMA:
        raise msgspec.ValidationError(f"its schema is {line.event.schema}, not {SCHEMA}")
    return line


def other_writer(data: bytes) -> str:
    """Return the version of esper_ab that wrote a first line with a different schema; "" for any other line."""
    try:
        origin = _decode_first(data).event
    except UNREADABLE:
        return ""
    return "" if origin.schema == SCHEMA else f"esper_ab {origin.versions.get('esper_ab', 'of another version')}"


def event_of(data: bytes) -> AnyEvent | None:
    """Return the event of an intact line of this version, without checking the chain; None for any other line."""
    try:
        return None if wrong_tail(data) else decode(data).event
    except UNREADABLE:
        return None


def is_episode(data: bytes) -> bool:
    """True if a line holds a training episode; does not decode it."""
    return data.find(_EPISODE, 0, _KIND_WITHIN) >= 0


# --- begun -----------------------------------------------------------------------------------------------------------
# An experiment has begun once its journal has a whole line.


def begun(experiment_dir: Path) -> bool:
    """True if the experiment's journal has an event. A launch that is killed early leaves a folder without an event."""
    try:
        with open_to_read(experiment_dir / JOURNAL_NAME) as journal:
            return journal.readline(LONGEST_LINE_BYTES).endswith(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return False
