"""The history of an experiment, as a fold of its journal's events. Pure: no file, no clock, no numpy.

`History.add` takes one event at a time, so the live view and the report agree at every milestone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.records import Checkpoint, EpisodeRecord, EvaluationRecord, RunRef
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.design.design import Design
from esper_ab.journal import events
from esper_ab.journal.columns import Columns
from esper_ab.journal.episodes import Episodes
from esper_ab.plan.plan import Block, Plan


class Inconsistent(JournalError):
    """An intact event does not fit the events before it; no version of esper_ab writes such a journal."""


_OF_RUNS = ("ppo_pathology", "dropped_pair", "cancelled")  # categories of incidents that must name a run
RunState = Literal["planned", "warming up", "training", "evaluating", "finished", "left out", "lost"]


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The fact that a worker started or resumed a run."""

    milestone: int  # of the run at that time
    sitting: int  # 0: when the experiment started; n: when it was continued for the n-th time
    worker: events.WorkerStarted | None  # None when the journal names none


@dataclass(kw_only=True)
class RunHistory:
    """The recorded state of one run."""

    spec: RunSpec
    columns: Columns = field(compare=False)  # the numbers of `episodes`
    started: bool = False
    warm_up_s: float | None = None
    released: int = -1  # last released milestone; -1 before the first
    episodes: Episodes = field(default_factory=Episodes)
    checkpoints: list[Checkpoint] = field(default_factory=list)  # in the order in which they were recorded
    evaluation: EvaluationRecord | None = None
    left_out: bool = False  # never started, because every comparison of its group had been decided
    lost: bool = False  # its replicate was given up, so it is in no comparison
    failed: bool = False  # this run caused the loss; the others of its replicate were cancelled
    taken: list[Taken] = field(default_factory=list)  # once per worker, in order
    confounders: set[str] = field(default_factory=set)  # found in its training episodes, as in the list of incidents
    reused: events.RunOffered | None = None  # the run of an earlier experiment that stands for it

    @property
    def expected(self) -> bool:
        """True if the run's outcome is still to come."""
        return not (self.left_out or self.lost or self.evaluation is not None)

    @property
    def recorded(self) -> int:
        """The last recorded milestone; -1 before the first."""
        if self.evaluation is not None:
            return self.spec.episodes + 1
        return -1 if self.warm_up_s is None else len(self.columns)

    @property
    def ref(self) -> RunRef:
        return self.spec.ref

    @property
    def state(self) -> RunState:
        if self.evaluation is not None:
            return "finished"
        if self.left_out or self.lost:
            return "left out" if self.left_out else "lost"
        if len(self.columns) >= self.spec.episodes:
            return "evaluating"
        if len(self.columns) or self.warm_up_s is not None:
            return "training"
        return "warming up" if self.started else "planned"

    def add(self, record: EpisodeRecord, *, keep: bool) -> None:
        """Add the numbers of a training episode and, if `keep` is True, its record."""
        if not self.columns.fits(record):
            raise Inconsistent(f"episode {record.episode} of {self.ref.name} has other measures than its plan")
        if keep:
            self.episodes[record.episode] = record
        self.columns.add(record)


@dataclass(kw_only=True)
class History:
    """Everything that a journal has recorded so far."""

    started: events.ExperimentStarted
    design: Design  # the rule that applies now
    blocks: list[Block]  # all planned so far, by replicate
    runs: dict[str, RunHistory]  # by run name, in plan order
    looks: list[events.LookTaken] = field(default_factory=list)
    continued: list[events.ExperimentContinued] = field(default_factory=list)
    workers: list[events.WorkerStarted] = field(default_factory=list)
    present: dict[str, events.WorkerStarted] = field(default_factory=dict)  # lane -> the last one started there
    incidents: list[events.Incident] = field(default_factory=list)
    ended: events.ExperimentEnded | None = None
    mended: events.TrainerMended | None = None  # the trainer's files that runs use instead of those in the plan
    references: events.ReferencesOpened | None = None  # the folder of kept runs, if there is one
    offered: dict[str, events.RunOffered] = field(default_factory=dict)  # kept runs that may be reused, by run
    reuse_checked: events.ReuseChecked | None = None
    keeps_records: bool = field(compare=False)  # False: keep only the columns of new training episodes

    @property
    def plan(self) -> Plan:
        return self.started.plan

    @property
    def outcome(self) -> Measure:
        """The measure by which groups are compared."""
        return self.design.measures.outcome

    @property
    def finished(self) -> bool:
        """True if the experiment has finished, so that nothing is left to resume."""
        return self.ended is not None and self.ended.status == "finished"

    @property
    def replicates(self) -> int:
        """Number of replicates planned so far."""
        return len(self.blocks)

    @property
    def pauses(self) -> tuple[str, ...]:
        """One sentence for each wait for disk space. Nothing was lost during these waits."""
        waits = [entry for entry in self.incidents if entry.category == "disk_full"]
        return tuple(f"{entry.run_name}: {entry.detail}" if entry.run_name else entry.detail for entry in waits)

    @property
    def groups(self) -> tuple[str, ...]:
        """Group names in the order of the experiment."""
        return tuple(group.name for group in self.plan.experiment.groups)

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the policy's heads, from the first run that has any."""
        return next((tuple(run.columns.heads) for run in self.runs.values() if run.columns.heads), ())

    def of_group(self, group: str) -> tuple[RunHistory, ...]:
        """Return the runs of one group, by replicate."""
        runs = [run for run in self.runs.values() if run.ref.group_id == group]
        return tuple(sorted(runs, key=lambda run: run.ref.replicate))

    def add(self, event: events.AnyEvent) -> None:
        """Add one event. Raises Inconsistent if it does not fit. Any event after the end reopens the experiment."""
        if isinstance(event, events.ExperimentStarted):
            raise Inconsistent("the experiment starts a second time")
        self.ended = event if isinstance(event, events.ExperimentEnded) else None
        match event:
            case events.WorkerStarted():
                self.workers.append(event)
                self.present[event.device] = event
            case events.ExperimentContinued():
                self.continued.append(event)
            case events.LookTaken():
                self._take_look(event)
            case events.PlanExtended():
                self._extend(event)
            case events.TrainerMended():
                self._take_mended(event)
            case events.Incident():
                self._take_entry(event)
            case events.ReferencesOpened() | events.RunOffered() | events.ReuseChecked():
                self._take_offer(event)
            case _:
                self._add_to_run(event)

    def run(self, name: str) -> RunHistory:
        """Return a run; raises Inconsistent if the run is not planned."""
        if name not in self.runs:
            raise Inconsistent(f"run {name!r} is not in the plan")
        return self.runs[name]

    def _add_to_run(self, event: events.AnyEvent) -> None:
        match event:
            case events.RunStarted():
                self.run(event.run.name).started = True
            case events.RunReused():
                self._take_reused(self.run(event.run.name))
            case events.RunReady():
                run = self.run(event.run.name)
                if run.warm_up_s is None:  # keep that of the first start
                    run.warm_up_s = event.warm_up_s
                worker = self.present.get(run.ref.device)
                run.taken.append(Taken(milestone=event.milestone, sitting=len(self.continued), worker=worker))
            case events.EpisodeRecorded():
                run = self.run(event.record.run.name)
                run.add(event.record, keep=self.keeps_records)
                if event.checkpoint is not None:
                    run.checkpoints.append(event.checkpoint)
            case events.RunEvaluated():
                run = self.run(event.record.run.name)
                _check_evaluation(event.record, run.columns)
                run.evaluation = event.record
            case events.MilestoneReleased():
                self._take_release(event)

    def _take_release(self, event: events.MilestoneReleased) -> None:
        for name in event.runs:
            run = self.run(name)
            run.released = max(run.released, event.milestone)

    def _take_offer(self, event: events.ReferencesOpened | events.RunOffered | events.ReuseChecked) -> None:
        match event:
            case events.ReferencesOpened():
                self.references = event
            case events.RunOffered():
                self.offered[event.run_name] = event
            case events.ReuseChecked():
                self.reuse_checked = event

    def _take_reused(self, run: RunHistory) -> None:
        if run.ref.name not in self.offered:
            raise Inconsistent(f"run {run.ref.name!r} is reused, but none was offered for it")
        run.started = True
        run.reused = self.offered[run.ref.name]

    def _take_entry(self, entry: events.Incident) -> None:
        if entry.run_name or entry.category in _OF_RUNS:
            run = self.run(entry.run_name)
            if entry.confounder is not msgspec.UNSET:
                run.confounders.add(entry.confounder)
            if entry.category in ("dropped_pair", "cancelled"):
                run.lost = True
                run.failed = entry.category == "dropped_pair"
        self.incidents.append(entry)

    def _take_mended(self, event: events.TrainerMended) -> None:
        if self.plan.trainer is None:
            raise Inconsistent("a trainer is mended, but the plan has none")
        self.mended = event

    def _take_look(self, look: events.LookTaken) -> None:
        self.looks.append(look)
        for run in self.runs.values():
            if run.ref.group_id in look.leaving and not run.started:
                run.left_out = True

    def _extend(self, event: events.PlanExtended) -> None:
        """Add the blocks of an extension, without the groups that have left."""
        _check(self.plan, event.extension.design, event.extension.blocks)
        stopped_groups = {group for look in self.looks for group in look.leaving}
        self.design = event.extension.design
        self.blocks.extend(event.extension.blocks)
        for block in event.extension.blocks:
            for spec in block.runs:
                left_out = spec.ref.group_id in stopped_groups
                columns = Columns(self.design.measures.names)
                self.runs[spec.ref.name] = RunHistory(spec=spec, columns=columns, left_out=left_out)


def _check(plan: Plan, design: Design, blocks: Sequence[Block]) -> None:
    """Raise Inconsistent if there is nothing to train, or if blocks name a group or device that is not in the plan."""
    groups = {group.name for group in plan.experiment.groups}
    compared_groups = {name for contrast in design.comparisons for name in (contrast.a, contrast.b)}
    runs = [spec.ref for block in blocks for spec in block.runs]
    if not runs:
        raise Inconsistent("the plan trains no group")
    for plan_words, named_set, known_set, kind in (
        ("compares", compared_groups, groups, "groups"),
        ("trains", {run.group_id for run in runs}, groups, "groups"),
        ("trains on", {run.device for run in runs}, {lane.name for lane in plan.lanes}, "devices"),
    ):
        if named_set - known_set:
            raise Inconsistent(f"the plan {plan_words} {min(named_set - known_set)!r}, which is not one of its {kind}")
    for ref in runs:
        if ref.name != f"{ref.group_id}/{ref.replicate}":
            raise Inconsistent(f"the plan calls replicate {ref.replicate} of {ref.group_id!r} {ref.name!r}")
    _check_bounds(design, len(groups))


def _check_bounds(design: Design, n_groups: int) -> None:
    """Raise Inconsistent unless the looks ascend, and each has a bound for every number of open comparisons."""
    if not 1 <= design.positions <= n_groups:
        raise Inconsistent(f"the plan has {design.positions} positions for {n_groups} groups")
    if list(design.looks) != sorted(set(design.looks)):
        raise Inconsistent(f"the looks of the plan, {design.looks}, do not ascend")
    shares = [boundary.open for boundary in design.boundaries]
    if shares and shares != list(range(len(design.comparisons), 0, -1)):
        raise Inconsistent(f"the plan has bounds for {shares} open comparisons, not {len(design.comparisons)} to 1")
    bounds = [boundary.nominal_p for boundary in design.boundaries]
    if design.futility is not None:
        bounds.append(design.futility.nominal_p)
    if design.non_inferiority is not None:
        bounds.append(design.non_inferiority.nominal_p)
    if design.guards is not None:
        bounds.append(design.guards.nominal_p)
    if any(len(bound) != len(design.looks) for bound in bounds):
        raise Inconsistent(f"the plan has {len(design.looks)} looks, but bounds for other ones")


def begin(first_event: events.ExperimentStarted, *, keeps_records: bool = True) -> History:
    """Return the history after the first line, in which all runs are planned and none is started.

    Raises Inconsistent if the plan is invalid.

    `keeps_records`: False in processes that live as long as the experiment, to bound their memory.
    """
    plan = first_event.plan
    _check(plan, plan.design, plan.blocks)
    names = plan.design.measures.names
    runs = {}
    for block in plan.blocks:
        for spec in block.runs:
            runs[spec.ref.name] = RunHistory(spec=spec, columns=Columns(names))
    return History(
        started=first_event, design=plan.design, blocks=[*plan.blocks], runs=runs, keeps_records=keeps_records
    )


def _check_evaluation(record: EvaluationRecord, columns: Columns) -> None:
    if any(tuple(episode.result.measures) != columns.measures for episode in record.episodes):
        raise Inconsistent(f"the evaluation of {record.run.name} has other measures than its plan")
    if any(episode.result.outcome is None for episode in record.episodes):
        raise Inconsistent(f"the evaluation of {record.run.name} has an environment without an outcome")


def fold(recorded_events: Iterable[events.AnyEvent], *, keeps_records: bool = True) -> History:
    """Return the history of a whole journal. Raises Inconsistent if an event, even the first one, does not fit.

    `keeps_records`: False to keep only the columns of training episodes.
    """
    iterator = iter(recorded_events)
    first_event = next(iterator, None)
    if not isinstance(first_event, events.ExperimentStarted):
        raise Inconsistent("it does not begin with experiment_started")
    history = begin(first_event, keeps_records=keeps_records)
    for event in iterator:
        history.add(event)
    return history
