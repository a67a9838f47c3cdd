"""Runs as the history records them: the orders for a worker, and what its report means for the run."""

from __future__ import annotations

from typing import Literal

import msgspec

from esper_ab.contracts.messages import Assign, EpisodeFinished, Evaluated, Ready
from esper_ab.contracts.wording import counted
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.control.rules import barrier
from esper_ab.control.rules.validation import Rejected, Report
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated, RunReady, TrainerMended
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan.plan import Block, Plan
from esper_ab.plan.trainer_code import mended_order


def barrier_of(block: Block, plan: Plan) -> barrier.BarrierState:
    """Return the block's barrier before any run has arrived; runs that take turns do so in the plan's start order."""
    experiment = plan.experiment
    runs = tuple(spec.ref.name for spec in block.runs)
    last_milestone = experiment.episodes + 1
    if experiment.placement in ("alternate", "sequence"):
        return barrier.begin(experiment.placement, runs, last_milestone)
    return barrier.begin(experiment.sync, runs, last_milestone)


NOWHERE = barrier.BEFORE_START
_CHECKPOINTS_OFFERED = 3  # a worker keeps two generations, and one may have been written without its record


def assignment(run: RunHistory, mended_trainer: TrainerMended | None) -> Assign:
    """Return the orders for a worker that continues the run from its last record, with the trainer as it is now."""
    newest_checkpoints = tuple(reversed(run.checkpoints))[:_CHECKPOINTS_OFFERED]
    spec = run.spec
    if mended_trainer is not None and spec.trainer is not None:
        spec = msgspec.structs.replace(spec, trainer=mended_order(spec.trainer, mended_trainer.sha256))
    return Assign(spec=spec, milestone=max(0, run.recorded), checkpoints=newest_checkpoints)


def arrival(
    run: RunHistory, reached_milestone: int, milestone: int, report: Report
) -> Literal["new", "again", "repeat"]:
    """Classify a report of `milestone` as "new", "again" (a redo after a restart) or "repeat" (a duplicate).

    `reached_milestone`: the last milestone that the run's current worker has reported. "again": an earlier worker
    reported the milestone; "repeat": this worker did. Raises Rejected if the worker cannot be at that milestone.
    """
    name = run.ref.name
    ready = isinstance(report, Ready)
    if ready and reached_milestone == NOWHERE:
        if milestone > max(0, run.recorded):
            ends = f"the records end after {max(0, run.recorded)}"
            raise Rejected(f"says it is ready after {counted(milestone, 'episode')} of {name}, but {ends}")
    elif milestone <= reached_milestone:
        return "repeat"
    elif ready or reached_milestone == NOWHERE or milestone != reached_milestone + 1:
        raise Rejected(
            f"reports {stage(run.spec, milestone)} of {name}, but {stage(run.spec, reached_milestone + 1)} comes next"
        )
    return "again" if milestone <= run.recorded else "new"


def same_record(run: RunHistory, milestone: int, report: Report) -> bool:
    """True if a report equals the record of its milestone; a Ready always does."""
    if isinstance(report, Ready):
        return True
    if milestone > run.spec.episodes:
        return run.evaluation is not None and run.evaluation.digest == report.record.digest
    return run.columns.digests[milestone - 1] == report.record.digest


def episode_at(spec: RunSpec, milestone: int) -> int | None:
    """Return the training episode that ends at `milestone`; None if none does."""
    return milestone - 1 if 1 <= milestone <= spec.episodes else None


def stage(spec: RunSpec, milestone: int) -> str:
    """Name the work that ends at `milestone`, for incidents and errors."""
    if 1 <= milestone <= spec.episodes:
        return f"episode {milestone - 1}"
    if milestone:
        return "evaluation"
    return "warm-up"


def event_of(report: Report) -> RunReady | EpisodeRecorded | RunEvaluated:
    """Return the journal event for a report."""
    match report:
        case Ready():
            return RunReady(run=report.run, warm_up_s=report.warm_up_s, milestone=report.milestone)
        case EpisodeFinished():
            return EpisodeRecorded(record=report.record, checkpoint=report.checkpoint)
        case Evaluated():
            return RunEvaluated(record=report.record)


def begun(history: History, block: Block) -> bool:
    """True if any run of the block was started."""
    return any(history.runs[spec.ref.name].started for spec in block.runs)


def given_up(history: History, block: Block) -> bool:
    """True if a run of the block was given up; the whole replicate is then given up."""
    return any(history.runs[spec.ref.name].lost for spec in block.runs)


def in_progress(history: History, block: Block) -> tuple[RunHistory, ...]:
    """Return the runs of a block that was started, not given up and not yet finished; else ()."""
    runs = tuple(run for spec in block.runs if not (run := history.runs[spec.ref.name]).left_out)
    if not begun(history, block) or given_up(history, block):
        return ()
    if any(run.released <= run.spec.episodes for run in runs):
        return runs
    return ()
