"""The kinds of journal events and the format of a line. The journal is the only source of truth.

Every report is a fold of these events.
"""

from __future__ import annotations

from typing import Literal

import msgspec

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
    # Of a command: commit of the git repository that it runs in, and number and hash of changed files; {}: not known.
    repository: dict[str, str] = {}


class ExperimentContinued(Event, frozen=True, kw_only=True, tag="experiment_continued"):
    """A new coordinator continues the experiment; its versions, machine and code may differ from those at the start."""

    versions: dict[str, str]
    machine: dict[str, str]
    code: dict[str, str]
    repository: dict[str, str] = {}


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
    """All records of `milestone` are on disk, and the runs named in `runs` may continue."""

    replicate: Index  # names the block
    milestone: Index
    runs: tuple[str, ...]


class LookTaken(Event, frozen=True, kw_only=True, tag="look"):
    """An interim look by the plan's rule. The numbers of the look follow from the records before it."""

    replicates: Index  # complete replicates, which identify the look
    decided: tuple[Contrast, ...]  # at this look
    leaving: tuple[str, ...]  # groups without any open comparison; blocks that start after this look leave them out
    futile: tuple[Contrast, ...] = ()  # stopped for futility at this look, without any claim
    # Not a planned look: all records of these comparisons agree, and the plan then ends. Left out of other looks.
    identical: tuple[Contrast, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def outcome(self) -> str:
        """The result in words, as in "decided a - b; stopped for futility: a - c"."""
        if not isinstance(self.identical, msgspec.UnsetType):
            return f"all records agree: {_name_contrasts(self.identical)}"
        text = f"decided {_name_contrasts(self.decided) or 'nothing'}"
        if self.futile:
            text += f"; stopped for futility: {_name_contrasts(self.futile)}"
        return text


def _name_contrasts(contrasts: tuple[Contrast, ...]) -> str:
    return ", ".join(f"{contrast.a} - {contrast.b}" for contrast in contrasts)


class PlanExtended(Event, frozen=True, kw_only=True, tag="plan_extended"):
    """Blocks are added to the plan; from this event on, the rule of `extension.design` applies."""

    extension: Extension


class TrainerMended(Event, frozen=True, kw_only=True, tag="trainer_mended"):
    """A trainer's files were changed before any seed was complete; from this event on, runs use the new files."""

    sha256: Sha256
    before: tuple[str, ...]  # runs with records that were made with earlier files


class KeptGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group whose runs are kept, and may have been kept by earlier experiments."""

    identity: Sha256  # of everything that determines the numbers of a run except its seed
    conditions: dict[str, str]  # machine and versions
    repeats: bool  # whether a seed repeats to the bit


class ReferencesOpened(Event, frozen=True, kw_only=True, tag="references"):
    """Runs of this experiment are kept in a folder, and those that earlier experiments kept there may be reused."""

    folder: str
    limit_bytes: Count
    opened_at: str  # ISO 8601
    groups: dict[str, KeptGroup]  # without those whose runs cannot be kept
    refused: tuple[str, ...] = ()  # why runs are neither kept nor reused, a sentence each


class RunOffered(Event, frozen=True, kw_only=True, tag="run_offered"):
    """A run that an earlier experiment kept, and that may stand for one of this plan."""

    run_name: str
    source: str  # the earlier experiment
    trained_at: str  # ISO 8601
    age_s: Seconds  # when it was offered
    check: bool = False  # the run is trained again, to see whether it gives the same records
    other_conditions: tuple[str, ...] = ()  # names of conditions under which it was trained and that differ now
    episodes: tuple[EpisodeRecord, ...]
    evaluation: EvaluationRecord


class ReuseChecked(Event, frozen=True, kw_only=True, tag="reuse_checked"):
    """The offered runs that were trained again have given the same records, or not; if not, none is reused."""

    agrees: bool
    runs: tuple[str, ...]  # that were trained again
    detail: str = ""  # what was different


class RunReused(Event, frozen=True, kw_only=True, tag="run_reused"):
    """The offered run stands for this one; its records follow."""

    run: RunRef


class Incident(Event, frozen=True, kw_only=True, tag="incident"):
    """A possible confounder of the comparison, shown with the results."""

    category: Literal[
        "restart",
        "non_finite",
        "dropped_pair",
        "cancelled",
        "unequal_devices",
        "cold_start",
        "inexact_resume",
        "ppo_pathology",
        "worker_death",
        "hung_worker",
        "bad_message",
        "interrupted",
        "damaged_checkpoint",
        "disk_full",
        "start_delayed",
        "moved",
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
    ExperimentStarted
    | ExperimentContinued
    | WorkerStarted
    | RunStarted
    | RunReady
    | EpisodeRecorded
    | RunEvaluated
    | MilestoneReleased
    | LookTaken
    | PlanExtended
    | TrainerMended
    | ReferencesOpened
    | RunOffered
    | ReuseChecked
    | RunReused
    | Incident
    | ExperimentEnded
)
SCHEMA = 9
