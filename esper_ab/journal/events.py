"""The kinds of journal line. The journal is the only source of truth: every report is a fold of these events."""

from __future__ import annotations

from typing import Literal

import msgspec

from esper_ab.contracts.records import Checkpoint, EpisodeRecord, EvaluationRecord, Moments, RunRef
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


class ExperimentContinued(Event, frozen=True, kw_only=True, tag="experiment_continued"):
    """A new coordinator continues the experiment; versions, machine and code may differ from those of the first."""

    versions: dict[str, str]
    machine: dict[str, str]
    code: dict[str, str]


class WorkerStarted(Event, frozen=True, kw_only=True, tag="worker_started"):
    worker: str
    incarnation: int
    device: str  # or devices, as in `RunRef`
    pid: int
    uuids: tuple[str, ...]
    torch_version: str
    sources: str = ""  # hash of the code that it imported; "" in journals older than this field
    host: str = ""  # the machine's own name; "" in journals older than this field, as the following ones
    node: str = ""  # as the launcher calls it; "": the coordinator's machine
    titles: tuple[str, ...] = ()  # of the devices, "" for a core
    driver: str = ""  # of GPUs


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    run: RunRef
    worker: str
    incarnation: int


class RunReady(Event, frozen=True, kw_only=True, tag="run_ready"):
    run: RunRef
    warm_up_s: float
    milestone: int = 0  # above 0 when the run was restored from a checkpoint


class EpisodeRecorded(Event, frozen=True, kw_only=True, tag="episode"):
    record: EpisodeRecord
    checkpoint: Checkpoint | None = None
    observations: Moments | msgspec.UnsetType = msgspec.UNSET  # absent unless the groups share their normaliser


class RunEvaluated(Event, frozen=True, kw_only=True, tag="evaluation"):
    record: EvaluationRecord


class MilestoneReleased(Event, frozen=True, kw_only=True, tag="released"):
    """All records of `milestone` are on disk and its runs may go on; `runs` are those released."""

    replicate: int  # names the block
    milestone: int
    runs: tuple[str, ...]
    observations: Moments | msgspec.UnsetType = msgspec.UNSET  # over the block; its learners use these from here on


class LookTaken(Event, frozen=True, kw_only=True, tag="look"):
    """An interim look by the plan's rule; its numbers are a function of the records before it."""

    replicates: int  # complete replicates, which identify the look
    decided: tuple[Contrast, ...]  # at this look
    leaving: tuple[str, ...]  # groups without any open comparison: left out of blocks that start after this look
    futile: tuple[Contrast, ...] = ()  # stopped for futility at this look: nothing is claimed of them

    @property
    def outcome(self) -> str:
        """What came of it in words: "decided a - b; stopped for futility: a - c"."""
        decided, futile = (", ".join(f"{one.a} - {one.b}" for one in these) for these in (self.decided, self.futile))
        return f"decided {decided or 'nothing'}{f'; stopped for futility: {futile}' if futile else ''}"


class PlanExtended(Event, frozen=True, kw_only=True, tag="plan_extended"):
    """Blocks added to the plan; from here on the rule of `extension.design` applies."""

    extension: Extension


class Incident(Event, frozen=True, kw_only=True, tag="incident"):
    """A possible confounder of the comparison; printed beside every number."""

    category: Literal[
        "restart", "non_finite", "dropped_pair", "cancelled", "unequal_devices", "cold_start", "inexact_resume",
        "ppo_pathology", "worker_death", "hung_worker", "bad_message", "interrupted", "damaged_checkpoint", "disk_full",
        "start_delayed", "moved",
    ]
    run_name: str = ""  # "" when it concerns the whole experiment
    episode: int | None = None
    detail: str
    last_words: tuple[str, ...] = ()  # lines: the end of a worker's log, with the stacks of one that hung
    confounder: str | msgspec.UnsetType = msgspec.UNSET  # what a training episode showed; entered once per run


class ExperimentEnded(Event, frozen=True, kw_only=True, tag="experiment_ended"):
    status: Literal["finished", "failed", "interrupted"]
    detail: str


AnyEvent = (
    ExperimentStarted | ExperimentContinued | WorkerStarted | RunStarted | RunReady | EpisodeRecorded | RunEvaluated
    | MilestoneReleased | LookTaken | PlanExtended | Incident | ExperimentEnded
)
SCHEMA = 8
