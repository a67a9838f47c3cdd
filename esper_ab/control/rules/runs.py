"""Runs, as far as the history records them: what a worker is told to do and what its report means for the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from esper_ab.contracts.messages import Assign, EpisodeFinished, Evaluated, Ready, RunSpec
from esper_ab.control.rules import barrier
from esper_ab.control.rules.turns import barrier_of
from esper_ab.control.rules.validation import Rejected, Report, digest_of
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated, RunReady
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan.plan import Block, Plan

NOWHERE = barrier.BEFORE_START
_CHECKPOINTS_OFFERED = 3  # a worker keeps two generations, and one may have been written without its record


def assignment(run: RunHistory) -> Assign:
    """Return the orders of a worker that takes the run up where its records end."""
    newest = tuple(reversed(run.checkpoints))[:_CHECKPOINTS_OFFERED]
    return Assign(spec=run.spec, milestone=max(0, run.recorded), checkpoints=newest)


def arrival(run: RunHistory, stands: int, milestone: int, report: Report) -> Literal["new", "again", "repeat"]:
    """Tell what a report of `milestone` is to the run, whose present worker has reported everything up to `stands`.

    again: an earlier worker has reported that milestone; repeat: this one has. Rejected when it cannot stand there.
    """
    name, ready = run.ref.name, isinstance(report, Ready)
    if ready and stands == NOWHERE:
        if milestone > max(0, run.recorded):
            raise Rejected(f"is ready at milestone {milestone} of {name}, but milestone {run.recorded} is the last one")
    elif milestone <= stands:
        return "repeat"
    elif ready or stands == NOWHERE or milestone != stands + 1:
        raise Rejected(f"reports milestone {milestone} of {name}, but its next one is {stands + 1}")
    return "again" if milestone <= run.recorded else "new"


def same_record(run: RunHistory, milestone: int, report: Report) -> bool:
    """Tell whether a report agrees with what is recorded of its milestone; a Ready says nothing about that."""
    if isinstance(report, Ready):
        return True
    if milestone > run.spec.episodes:
        return run.evaluation is not None and run.evaluation.digest == digest_of(report)
    return run.columns.digests[milestone - 1] == digest_of(report)


def episode_at(spec: RunSpec, milestone: int) -> int | None:
    """Return the training episode whose record is the arrival at `milestone`, if one is."""
    return milestone - 1 if 1 <= milestone <= spec.episodes else None


def event_of(report: Report) -> RunReady | EpisodeRecorded | RunEvaluated:
    """Return what is journalled of a report."""
    match report:
        case Ready():
            return RunReady(run=report.run, warm_up_s=report.warm_up_s, milestone=report.milestone)
        case EpisodeFinished():
            observations = msgspec.UNSET if report.observations is None else report.observations
            return EpisodeRecorded(record=report.record, checkpoint=report.checkpoint, observations=observations)
        case Evaluated():
            return RunEvaluated(record=report.record)


def begun(history: History, block: Block) -> bool:
    """Tell whether any run of the block was started."""
    return any(history.runs[spec.ref.name].started for spec in block.runs)


def given_up(history: History, block: Block) -> bool:
    """Tell whether the replicate has lost a run."""
    return any(history.runs[spec.ref.name].lost for spec in block.runs)


def in_progress(history: History, block: Block) -> tuple[RunHistory, ...]:
    """Return the runs of a block that was started, not given up and not released from its end; else none."""
    runs = tuple(run for spec in block.runs if not (run := history.runs[spec.ref.name]).left_out)
    if not begun(history, block) or given_up(history, block):
        return ()
    return runs if any(run.released <= run.spec.episodes for run in runs) else ()


def barrier_again(
    block: Block, kept: Sequence[RunHistory], plan: Plan
) -> tuple[barrier.BarrierState, tuple[barrier.ReleaseRuns, ...]]:
    """Return the barrier of a block in progress whose workers are all gone, and the releases that are due at once."""
    fresh = barrier_of(block, plan)
    return barrier.restore(fresh, {run.ref.name: (run.recorded, run.released) for run in kept})
