"""The blocks that wait for their lanes, in the order of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from esper_ab.control.rules import looks, reuse, runs
from esper_ab.journal.fold import History
from esper_ab.plan.plan import Block


class WaitingBlocks:
    """Blocks that wait to start, without the runs that no open comparison needs."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._queue(block for block in history.blocks if not runs.begun(history, block))

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def put_back(self, block: Block) -> None:
        """Add a block that was begun and then set aside; it starts before the others."""
        self._queue([block, *self._blocks])

    def update(self, added_blocks: Iterable[Block]) -> None:
        """Update after a look: drop the runs that the look made superfluous, and add the blocks of an extension."""
        self._queue([*self._blocks, *added_blocks])

    def take(self, free_lanes: set[str]) -> Iterator[Block]:
        """Yield, in order, every block whose lanes are all in `free_lanes`; reused runs need none.

        A block that keeps waiting reserves its free lanes, so later blocks cannot take them.

        Stops when no lane is left, so the cost of a round does not grow with the number of waiting blocks.
        """
        free_lanes = free_lanes & self._wanted
        if not free_lanes:
            return
        for block in tuple(self._blocks):
            if not free_lanes or not looks.may_start(self._history, block) or reuse.is_held(self._history, block):
                return
            lanes = self._lanes_of(block)
            if lanes <= free_lanes:
                self._blocks.remove(block)
                yield block
            free_lanes -= lanes

    def _lanes_of(self, block: Block) -> set[str]:
        """Return the lanes that a block needs; all, if its runs take turns, which another block would disturb."""
        if self._history.offered and not self._history.plan.experiment.takes_turns:
            return {spec.ref.device for spec in block.runs if not reuse.stands(self._history, spec.ref.name)}
        return {spec.ref.device for spec in block.runs}

    def _queue(self, blocks: Iterable[Block]) -> None:
        remaining_blocks = (looks.remaining(self._history, block) for block in blocks)
        self._blocks = [block for block in remaining_blocks if block.runs]
        self._wanted = {spec.ref.device for block in self._blocks for spec in block.runs}
