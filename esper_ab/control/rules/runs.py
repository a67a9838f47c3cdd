"""Runs in progress: their orders, what they have reported, where their workers stand. Pure.

Everything here can be rebuilt from a history, which is what a coordinator does that takes over from another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from esper_ab.contracts.messages import Assign, EpisodeFinished, Evaluated, Ready, RunSpec
from esper_ab.contracts.records import Checkpoint
from esper_ab.control.rules import barrier
from esper_ab.control.rules.liveness import Sign
from esper_ab.control.rules.turns import barrier_of
from esper_ab.control.rules.validation import Rejected, Report, digest_of, point_of
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated, RunReady
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan import Block, Plan

NOWHERE = -1
_CHECKPOINTS_OFFERED = 3  # a worker keeps two generations, and one may have been written without its record


@dataclass
class Run:
    """One assigned run."""

    spec: RunSpec
    reported: dict[int, str] = field(default_factory=dict)  # point -> digest of its record; no gaps
    stands: int = NOWHERE  # last point that the present worker has reported

    @property
    def name(self) -> str:
        return self.spec.ref.run

    @property
    def recorded(self) -> int:
        """The last recorded point, or NOWHERE."""
        return len(self.reported) - 1

    @property
    def complete(self) -> bool:
        return self.recorded > self.spec.episodes

    def order(self, checkpoints: Sequence[Checkpoint]) -> Assign:
        """What a worker is told that takes the run up; `checkpoints` in the order in which they were recorded."""
        newest = tuple(reversed(checkpoints))[:_CHECKPOINTS_OFFERED]
        return Assign(spec=self.spec, point=max(0, self.recorded), checkpoints=newest)

    def arrive(self, report: Report) -> Literal["new", "again", "repeat"]:
        """Take note of where the worker stands; Rejected when it cannot stand there.

        again: another worker before it has reported that point; repeat: it has said so before.
        """
        point = point_of(report, self.spec)
        if isinstance(report, Ready) and self.stands == NOWHERE:
            if point > max(0, self.recorded):
                raise Rejected(f"is ready at point {point} of {self.name}, but point {self.recorded} is the last one")
        elif point <= self.stands:
            return "repeat"
        elif isinstance(report, Ready) or self.stands == NOWHERE or point != self.stands + 1:
            raise Rejected(f"reports point {point} of {self.name}, but its next one is {self.stands + 1}")
        self.stands = point
        if point in self.reported:
            return "again"
        self.reported[point] = digest_of(report)
        return "new"


def episode_at(spec: RunSpec, point: int) -> int | None:
    """The training episode whose record is the arrival at `point`, if one is."""
    return point - 1 if 1 <= point <= spec.episodes else None


def event_of(report: Report) -> RunReady | EpisodeRecorded | RunEvaluated:
    """What is journalled of a report."""
    match report:
        case Ready():
            return RunReady(run=report.run, warm_up_s=report.warm_up_s, point=report.point)
        case EpisodeFinished():
            observations = msgspec.UNSET if report.observations is None else report.observations
            return EpisodeRecorded(record=report.record, checkpoint=report.checkpoint, observations=observations)
        case Evaluated():
            return RunEvaluated(record=report.record)


def whereabouts(run: Run | None, greeted: bool, sign: Sign | None) -> str:
    """Where a worker was; `sign`: the last it gave, None when it owed none."""
    if run is None or not greeted:
        return "between runs" if greeted else "before it was ready for a run"
    if sign is None:
        return f"while run {run.name} waited at the barrier of point {run.stands}"
    point = run.stands + 1
    episode = episode_at(run.spec, point)
    stage = f"episode {episode}" if episode is not None else "evaluation" if point else "warm-up"
    return f"in {stage} of run {run.name} (last sign: {sign.phase}, step {sign.step})"


# --- from a history ---


def begun(history: History, block: Block) -> bool:
    """Whether any run of the block was started."""
    return any(history.runs[spec.ref.run].started for spec in block.runs)


def given_up(history: History, block: Block) -> bool:
    """Whether the replicate has lost a run."""
    return any(history.runs[spec.ref.run].lost for spec in block.runs)


def in_progress(history: History, block: Block) -> tuple[RunHistory, ...]:
    """The runs of a block that was started, not given up and not released from its end; else none."""
    runs = tuple(run for spec in block.runs if not (run := history.runs[spec.ref.run]).left_out)
    if not begun(history, block) or given_up(history, block):
        return ()
    return runs if any(run.released <= run.spec.episodes for run in runs) else ()


def run_of(kept: RunHistory) -> Run:
    """The run as far as it is recorded; nobody stands anywhere for it."""
    reported = {} if kept.warm_up_s is None else {0: ""}
    columns = kept.columns
    reported |= {episode + 1: digest for episode, digest in zip(columns.episodes, columns.digests, strict=True)}
    if kept.evaluation is not None:
        reported[kept.spec.episodes + 1] = kept.evaluation.digest
    return Run(kept.spec, reported)


def barrier_again(
    block: Block, kept: Sequence[RunHistory], plan: Plan
) -> tuple[barrier.State, tuple[barrier.Command, ...]]:
    """The barrier of a block in progress whose workers are all gone, and what is to be done at once."""
    fresh = barrier_of(block, plan)
    return barrier.restore(fresh, {run.ref.run: (run_of(run).recorded, run.released) for run in kept})
