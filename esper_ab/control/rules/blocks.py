"""The blocks in progress: where their runs' present workers stand, and which releases are decided and not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from esper_ab.control.rules import barrier
from esper_ab.control.rules.runs import NOWHERE, arrival, barrier_again
from esper_ab.control.rules.turns import barrier_of
from esper_ab.control.rules.validation import Rejected, Report
from esper_ab.journal.fold import RunHistory
from esper_ab.plan.plan import Block, Plan


class BlocksInProgress:
    """One barrier per block, and the queue of releases that the next end of a round records."""

    def __init__(self) -> None:
        self._barriers: dict[int, barrier.BarrierState] = {}  # by block
        self._due: list[tuple[int, barrier.ReleaseRuns]] = []  # by block, in the order in which they were decided
        self._held: set[str] = set()  # runs whose release a stop holds back for good

    def __bool__(self) -> bool:
        return bool(self._barriers)

    def __contains__(self, block: int) -> bool:
        return block in self._barriers

    def begin(self, block: Block, plan: Plan) -> None:
        """Add a block before its first arrival."""
        self._barriers[block.replicate] = barrier_of(block, plan)

    def restore(self, block: Block, kept: Sequence[RunHistory], plan: Plan) -> None:
        """Add a block whose runs are recorded so far and have no workers."""
        self._barriers[block.replicate], due = barrier_again(block, kept, plan)
        self._due.extend((block.replicate, release) for release in due)

    def remove(self, block: int) -> None:
        """Forget a block that is done or given up, and what was decided about it."""
        self._barriers.pop(block, None)
        self._due = [(index, release) for index, release in self._due if index != block]

    def arrival(self, run: RunHistory, milestone: int, report: Report) -> Literal["new", "again", "repeat"]:
        """Tell what a report is to the run, as `runs.arrival` does; Rejected, too, before its release was recorded."""
        stands = self.stands(run)
        heard = arrival(run, stands, milestone, report)
        if heard != "repeat" and stands != NOWHERE and not self.may_pass(run, stands):
            raise Rejected(f"reports milestone {milestone} of {run.ref.name}, but was not released from {stands}")
        return heard

    def arrived(self, run: RunHistory, milestone: int) -> None:
        """The run's worker stands at a milestone; one that was gone has another worker from here on."""
        position = self._barriers[run.ref.replicate].positions[run.ref.name]
        if position.dead:
            self._advance(run, barrier.Rejoined(run.ref.name, min(position.arrived, milestone)))
        self._advance(run, barrier.Arrived(run.ref.name, milestone))

    def died(self, run: RunHistory) -> None:
        """The run's worker is gone."""
        self._advance(run, barrier.Died(run.ref.name, run.recorded, run.released))

    def _advance(self, run: RunHistory, event: barrier.BarrierEvent) -> None:
        block = run.ref.replicate
        self._barriers[block], due = barrier.advance(self._barriers[block], event)
        self._due.extend((block, release) for release in due)

    def stands(self, run: RunHistory) -> int:
        """Return the last milestone that the run's present worker has reported; NOWHERE without any."""
        state = self._barriers.get(run.ref.replicate)
        if state is None:
            return run.recorded  # the block is done or given up
        position = state.positions[run.ref.name]
        return NOWHERE if position.dead else position.arrived

    def may_pass(self, run: RunHistory, milestone: int) -> bool:
        """Tell whether the run was released from a milestone, and that is recorded."""
        if run.ref.name in self._unrecorded():
            return False
        state = self._barriers.get(run.ref.replicate)
        return (run.released if state is None else state.positions[run.ref.name].released) >= milestone

    def runs(self, block: int) -> tuple[str, ...]:
        """Return the names of a block's runs that take part, in start order."""
        return tuple(self._barriers[block].positions)

    @property
    def anything_due(self) -> bool:
        """Whether a release was decided since the last `take_due`."""
        return bool(self._due)

    def take_due(self, *, stopping: bool) -> list[tuple[int, barrier.ReleaseRuns]]:
        """Take the releases that are to be recorded now; a stop holds back those that begin work after a milestone."""
        due, self._due = self._due, []
        held = [release for block, release in due if stopping and barrier.begins_work(self._barriers[block], release)]
        self._held.update(name for release in held for name in release.runs)
        return [one for one in due if one[1] not in held]

    def _unrecorded(self) -> set[str]:
        return self._held.union(*(release.runs for _, release in self._due))

    def is_done(self, block: int) -> bool:
        """Tell whether every run of the block was released from its end."""
        return self._barriers[block].done

    def at_work(self) -> list[str]:
        """Return the runs on their way to their next milestone, without those whose release is not recorded."""
        waiting = self._unrecorded()
        return [name for state in self._barriers.values() for name in barrier.working(state) if name not in waiting]
