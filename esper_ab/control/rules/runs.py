"""Rules for runs: the barrier of a block, the classification of reports, and the consequences of a worker's death."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

import msgspec

from esper_ab.contracts.messages import Assign, EpisodeFinished, Evaluated, Ready, RunSpec
from esper_ab.contracts.wording import counted
from esper_ab.control.rules import barrier
from esper_ab.control.rules.validation import Rejected, Report
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated, RunReady, TrainerMended
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan.plan import Block, Plan
from esper_ab.plan.users_code import mended_order


def barrier_of(block: Block, plan: Plan) -> barrier.BarrierState:
    """Return the block's barrier before any run has arrived; runs that take turns do so in the plan's start order."""
    experiment, runs = plan.experiment, tuple(spec.ref.name for spec in block.runs)
    last = experiment.episodes + 1
    if experiment.placement in ("alternate", "sequence"):
        return barrier.begin(experiment.placement, runs, last)
    return barrier.begin(experiment.sync, runs, last)


# --- runs ------------------------------------------------------------------------------------------------------------
# Runs as the history records them: the orders for a worker, and what its report means for the run.


NOWHERE = barrier.BEFORE_START
_CHECKPOINTS_OFFERED = 3  # a worker keeps two generations, and one may have been written without its record


def assignment(run: RunHistory, mended: TrainerMended | None) -> Assign:
    """Return the orders for a worker that continues the run from its last record, with the trainer as it is now."""
    newest, spec = tuple(reversed(run.checkpoints))[:_CHECKPOINTS_OFFERED], run.spec
    if mended is not None and spec.trainer is not None:
        spec = msgspec.structs.replace(spec, trainer=mended_order(spec.trainer, mended.sha256))
    return Assign(spec=spec, milestone=max(0, run.recorded), checkpoints=newest)


def arrival(run: RunHistory, stands: int, milestone: int, report: Report) -> Literal["new", "again", "repeat"]:
    """Classify a report of `milestone` as "new", "again" (a redo after a restart) or "repeat" (a duplicate).

    `stands`: the last milestone that the run's current worker has reported. "again": an earlier worker reported the
    milestone; "repeat": this worker did. Raises Rejected if the worker cannot be at that milestone.
    """
    name, ready = run.ref.name, isinstance(report, Ready)
    if ready and stands == NOWHERE:
        if milestone > max(0, run.recorded):
            ends = f"the records end after {max(0, run.recorded)}"
            raise Rejected(f"says it is ready after {counted(milestone, 'episode')} of {name}, but {ends}")
    elif milestone <= stands:
        return "repeat"
    elif ready or stands == NOWHERE or milestone != stands + 1:
        raise Rejected(f"reports {stage(run.spec, milestone)} of {name}, but {stage(run.spec, stands + 1)} comes next")
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
    return f"episode {milestone - 1}" if 1 <= milestone <= spec.episodes else "evaluation" if milestone else "warm-up"


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
    return runs if any(run.released <= run.spec.episodes for run in runs) else ()


# --- recovery --------------------------------------------------------------------------------------------------------
# What follows the death of a worker: restart it, give the replicate up, or end the experiment.
#
# If a run's worker dies three times without progress (`Limits.deaths`), a fourth start would hardly help: its replicate
# is given up in every group. If a worker dies three times in a row without a run, or three replicates are given up for
# the same reason before any is complete, the set-up itself is at fault. Then the experiment ends, because going on
# would only use up the plan.


DEATHS_OUTSIDE = 3  # deaths in a row of one lane's worker without a run
DROPS = 3  # replicates given up for the same reason, with none complete


class Deaths:
    """Counts deaths since the last progress."""

    def __init__(self, most: int) -> None:
        """`most`: the number of deaths at one milestone after which the replicate is given up."""
        self._most = most
        self._of_run: dict[str, tuple[int, int]] = {}  # run -> last recorded milestone, deaths since
        self._of_lane: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._accounts: dict[str, str] = {}  # run -> account of its last death

    def in_run(self, run: str, milestone: int) -> bool:
        """Count the death of a worker of `run`; True if the run's replicate is to be given up.

        `milestone`: the run's last recorded milestone. The count restarts when the run has got further since the last
        death.
        """
        before, deaths = self._of_run.get(run, (milestone, 0))
        deaths = deaths + 1 if before == milestone else 1
        self._of_run[run] = (milestone, deaths)
        return deaths >= self._most

    def alike(self, run: str, account: str) -> bool:
        """Store the `account` of a death of `run`; True if it equals the previous one except for numbers."""
        before = self._accounts.get(run)
        self._accounts[run] = _without_numbers(account)
        return self._accounts[run] == before

    def outside(self, lane: str) -> bool:
        """Count a death of the lane's worker outside a run; True if the experiment is to end."""
        self._of_lane[lane] += 1
        return self._of_lane[lane] >= DEATHS_OUTSIDE

    def got_on(self, lane: str) -> None:
        """Reset the lane's count, because its worker has made progress."""
        self._of_lane.pop(lane, None)

    def gave_up(self, reason: str) -> bool:
        """Count a replicate given up; True if too many were given up for this reason. Numbers in reasons are ignored.
        """
        alike = _without_numbers(reason)
        self._reasons[alike] += 1
        return self._reasons[alike] >= DROPS


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)


def any_complete(history: History) -> bool:
    """True if some replicate has the outcomes of all its runs that were not left out."""
    for block in history.blocks:
        runs = [history.runs[spec.ref.name] for spec in block.runs]
        begun = [run for run in runs if not run.left_out]
        if begun and all(run.evaluation is not None and not run.lost for run in begun):
            return True
    return False


def any_expected(history: History) -> bool:
    """True if the outcome of some run is still to come."""
    return any(run.expected for run in history.runs.values())


def nothing_left(history: History) -> bool:
    """True if runs were given up, none is still expected and no replicate is complete."""
    lost = any(run.lost for run in history.runs.values())
    return lost and not any_expected(history) and not any_complete(history)
