"""The blocks in progress: where the current workers of their runs stand, and which decided releases are unrecorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from esper_ab.control.rules import barrier, runs
from esper_ab.control.rules.runs import NOWHERE, arrival, barrier_of, stage
from esper_ab.control.rules.validation import Rejected, Report
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan.plan import Block, Plan


class BlocksInProgress:
    """One barrier per block, and the queue of releases to record at the end of the round."""

    def __init__(self) -> None:
        self._barriers: dict[int, barrier.BarrierState] = {}  # by block
        self._due: list[tuple[int, barrier.ReleaseRuns]] = []  # (block, release), in the order of decision
        self._unrecorded: set[str] = set()  # runs whose release is decided; after a stop, some are never released

    def __bool__(self) -> bool:
        return bool(self._barriers)

    @property
    def replicates(self) -> frozenset[int]:
        """The replicates in progress."""
        return frozenset(self._barriers)

    def begin(self, block: Block, plan: Plan) -> None:
        """Add a block before any of its runs has arrived."""
        self._barriers[block.replicate] = barrier_of(block, plan)

    def begin_or_restore(self, block: Block, history: History) -> None:
        """Add a block; if it was begun before and then set aside, add it from its records."""
        kept_runs = runs.in_progress(history, block)
        if kept_runs:
            self.restore(block, kept_runs, history.plan)
        else:
            self.begin(block, history.plan)

    def restore(self, block: Block, kept_runs: Sequence[RunHistory], plan: Plan) -> None:
        """Add a block from its records; its runs have no workers yet."""
        restored_positions = {run.ref.name: (run.recorded, run.released) for run in kept_runs}
        self._take(block.replicate, barrier.restore(barrier_of(block, plan), restored_positions))

    def remove(self, block: int) -> None:
        """Forget a block that is done or given up, with its queued releases."""
        self._barriers.pop(block, None)
        self._unrecorded.difference_update(*(release.runs for index, release in self._due if index == block))
        self._due = [(index, release) for index, release in self._due if index != block]

    def is_set_aside(self, run: RunHistory) -> bool:
        """True if the run is unfinished and its block, which was begun, is not in progress."""
        return run.expected and run.ref.replicate not in self._barriers

    def arrival(self, run: RunHistory, milestone: int, report: Report) -> Literal["new", "again", "repeat"]:
        """Classify a report as `runs.arrival` does. Also raises Rejected if the run's release is not yet recorded."""
        reached_milestone = self.stands(run)
        kind = arrival(run, reached_milestone, milestone, report)
        if kind != "repeat" and reached_milestone != NOWHERE and not self.may_pass(run, reached_milestone):
            raise Rejected(
                f"reports {stage(run.spec, milestone)} of {run.ref.name}, but was not released after "
                f"{stage(run.spec, reached_milestone)}"
            )
        return kind

    def arrived(self, run: RunHistory, milestone: int) -> None:
        """Move the run to a milestone.

        If the run counted as dead, this arrival means that a new worker continues it.
        """
        block = run.ref.replicate
        name = run.ref.name
        position = self._barriers[block].positions[name]
        if position.dead:
            self._take(block, barrier.rejoined(self._barriers[block], name, min(position.arrived, milestone)))
        self._take(block, barrier.arrived(self._barriers[block], name, milestone))

    def died(self, run: RunHistory) -> None:
        """Note that the run's worker is gone."""
        block = run.ref.replicate
        self._take(block, barrier.died(self._barriers[block], run.ref.name, run.recorded, run.released))

    def _take(self, block: int, advanced: barrier.Advanced) -> None:
        self._barriers[block], due_releases = advanced
        for release in due_releases:
            self._due.append((block, release))
            self._unrecorded.update(release.runs)

    def stands(self, run: RunHistory) -> int:
        """Return the last milestone that the run's current worker has reported; NOWHERE if none."""
        state = self._barriers.get(run.ref.replicate)
        if state is None:
            return run.recorded  # the block is done or given up
        position = state.positions[run.ref.name]
        return NOWHERE if position.dead else position.arrived

    def may_pass(self, run: RunHistory, milestone: int) -> bool:
        """True if the run's release from a milestone is recorded."""
        if run.ref.name in self._unrecorded:
            return False
        state = self._barriers.get(run.ref.replicate)
        return (run.released if state is None else state.positions[run.ref.name].released) >= milestone

    @property
    def anything_due(self) -> bool:
        """True if a release was decided since the last `take_due`."""
        return bool(self._due)

    def take_due(self, *, stopping: bool) -> list[tuple[int, barrier.ReleaseRuns]]:
        """Take the releases to record now.

        When stopping, hold back the releases after which a run would do further work.
        """
        due_releases = [
            (block, release)
            for block, release in self._due
            if not (stopping and release.milestone < self._barriers[block].last)
        ]
        self._unrecorded.difference_update(*(release.runs for _, release in due_releases))
        self._due = []
        return due_releases

    def is_done(self, block: int) -> bool:
        """True if every run of the block was released from its last milestone."""
        return self._barriers[block].done

    def at_work(self) -> list[str]:
        """Return the runs on their way to their next milestone, except those whose release is not recorded."""
        working_runs = (name for state in self._barriers.values() for name in barrier.working(state))
        return [name for name in working_runs if name not in self._unrecorded]
