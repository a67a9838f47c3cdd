"""The blocks in progress: where their runs' present workers stand, and which releases are decided and not recorded."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.control.rules import barrier
from esper_ab.control.rules.runs import NOWHERE, barrier_again
from esper_ab.control.rules.turns import barrier_of
from esper_ab.journal.fold import RunHistory
from esper_ab.plan.blocks import Block, Plan


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
        self._barriers[block.index] = barrier_of(block, plan)

    def restore(self, block: Block, kept: Sequence[RunHistory], plan: Plan) -> None:
        """Add a block whose runs are recorded so far and have no workers."""
        self._barriers[block.index], due = barrier_again(block, kept, plan)
        self._due.extend((block.index, release) for release in due)

    def remove(self, block: int) -> None:
        """Forget a block that is done or given up, and what was decided about it."""
        self._barriers.pop(block, None)
        self._due = [(index, release) for index, release in self._due if index != block]

    def arrived(self, run: RunHistory, point: int) -> None:
        """The run's worker stands at a point; one that was gone has another worker from here on."""
        position = self._barriers[run.spec.block].positions[run.ref.run]
        if position.dead:
            self._step(run, barrier.Rejoined(run.ref.run, min(position.arrived, point)))
        self._step(run, barrier.Arrived(run.ref.run, point))

    def died(self, run: RunHistory) -> None:
        """The run's worker is gone."""
        self._step(run, barrier.Died(run.ref.run, run.recorded, run.released))

    def _step(self, run: RunHistory, event: barrier.Event) -> None:
        block = run.spec.block
        self._barriers[block], due = barrier.step(self._barriers[block], event)
        self._due.extend((block, release) for release in due)

    def stands(self, run: RunHistory) -> int:
        """Return the last point that the run's present worker has reported; NOWHERE without any."""
        state = self._barriers.get(run.spec.block)
        if state is None:
            return run.recorded  # the block is done or given up
        position = state.positions[run.ref.run]
        return NOWHERE if position.dead else position.arrived

    def may_pass(self, run: RunHistory, point: int) -> bool:
        """Tell whether the run was released from a point, and that is recorded."""
        if run.ref.run in self._unrecorded():
            return False
        state = self._barriers.get(run.spec.block)
        return (run.released if state is None else state.positions[run.ref.run].released) >= point

    def runs(self, block: int) -> tuple[str, ...]:
        """Return the names of a block's runs that take part, in start order."""
        return tuple(self._barriers[block].positions)

    @property
    def anything_due(self) -> bool:
        """Whether a release was decided since the last `take_due`."""
        return bool(self._due)

    def take_due(self, *, stopping: bool) -> list[tuple[int, barrier.ReleaseRuns]]:
        """Take the releases that are to be recorded now; a stop holds back those that begin the work after a point."""
        due, self._due = self._due, []
        held = [release for block, release in due if stopping and self._begins_work(block, release)]
        self._held.update(name for release in held for name in release.runs)
        return [one for one in due if one[1] not in held]

    def _begins_work(self, block: int, release: barrier.ReleaseRuns) -> bool:
        state = self._barriers[block]
        return release.point < state.last and barrier.opens(state, release)

    def _unrecorded(self) -> set[str]:
        return self._held.union(*(release.runs for _, release in self._due))

    def is_done(self, block: int) -> bool:
        """Tell whether every run of the block was released from its end."""
        return self._barriers[block].done

    def at_work(self) -> list[str]:
        """Return the runs on their way to their next point, without those whose release is not recorded."""
        waiting = self._unrecorded()
        return [name for state in self._barriers.values() for name in barrier.working(state) if name not in waiting]
