"""Replicates without outcome: those that are given up, and those that are set aside until it is clear what is at fault.

A run that keeps failing gives its replicate up in every group. But if runs of other replicates fail in the same way,
the user's program is at fault and not the seed. So a replicate whose runs fail is only set aside: if most others fail
so, too, the experiment ends with all seeds kept, and can be resumed when the program is mended. Once another replicate
is completed, or no other run is left to try, the replicates set aside are given up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from esper_ab.contracts import messages
from esper_ab.contracts.errors import EsperError, WorkerFailed, WorkerHung
from esper_ab.control.rules import commands, incidents
from esper_ab.control.rules.blocks import BlocksInProgress
from esper_ab.control.rules.deaths import Deaths, any_complete, nothing_left, number_complete
from esper_ab.control.rules.liveness import Liveness
from esper_ab.control.rules.outbox import Outbox
from esper_ab.control.rules.worker_state import Workers
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan.plan import Block

NOTHING_LEFT = "every seed was given up, so there is nothing to compare"


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A replicate to give up: the run that failed, how often and how, and the error if this ends the experiment."""

    run: RunHistory
    alike: tuple[str, ...] = ()  # other runs of the replicate that failed in the same way
    deaths: int
    how: str
    error: WorkerFailed | WorkerHung


class GivingUp:
    """Gives replicates up, or sets them aside."""

    def __init__(
        self,
        history: History,
        outbox: Outbox,
        blocks: BlocksInProgress,
        workers: Workers,
        liveness: Liveness,
        deaths: Deaths,
    ) -> None:
        self._history = history
        self._out = outbox
        self._blocks = blocks
        self._workers = workers
        self._liveness = liveness
        self._deaths = deaths
        self._aside: list[tuple[int, Dropped]] = []  # with the number of replicates that were complete

    @property
    def any_aside(self) -> bool:
        return bool(self._aside)

    def set_aside(self, dropped_run: Dropped) -> None:
        """Free the lanes of the replicate; the journal records nothing, so a later coordinator begins it again."""
        block = self._block_of(dropped_run.run)
        self._free_lanes(
            block, f"seed {block.replicate} is set aside: {dropped_run.run.ref.name} failed: {dropped_run.how}"
        )
        self._aside.append((number_complete(self._history), dropped_run))

    def due(self, *, nothing_else: bool) -> tuple[Dropped, ...]:
        """Take the replicates since which another one was completed, or all if there is `nothing_else` to train."""
        if not self._aside:
            return ()
        complete_seeds = number_complete(self._history)
        due_drops = [
            (complete_then, dropped_run)
            for complete_then, dropped_run in self._aside
            if nothing_else or complete_seeds > complete_then
        ]
        self._aside = [waiting_run for waiting_run in self._aside if waiting_run not in due_drops]
        return tuple(dropped_run for _, dropped_run in due_drops)

    def drop(self, dropped_run: Dropped) -> EsperError | None:
        """Give up the replicate of a run that keeps failing; return an error if this ends the experiment, else None."""
        death_words = incidents.died(dropped_run.run, dropped_run.deaths)
        failed_runs = (dropped_run.run.ref.name, *dropped_run.alike)
        self.give_up(self._block_of(dropped_run.run), f"{death_words}: {dropped_run.how}", failed_runs)
        self._out.do(commands.Sync())
        error = dropped_run.error
        if self._deaths.count_given_up(dropped_run.how) and not any_complete(self._history):
            return type(error)(f"{error}\nseveral seeds were given up for the same reason and none was completed")
        if nothing_left(self._history):
            return type(error)(f"{error}\n{NOTHING_LEFT}")
        return None

    def give_all_up(self, run: RunHistory, account: str) -> str:
        """Give up all replicates, because every run would use the same faulty user code; return the message."""
        for block in self._history.blocks:
            self.give_up(block, f"{run.ref.name} failed, and every retry would fail, too", (run.ref.name,))
        self._out.do(commands.Sync())
        return f"{account}\nevery seed was given up, as a retry would fail in the same way: fix it, then launch again"

    def give_up(self, block: Block, cause: str, failed_run: Collection[str] = ()) -> None:
        """Give up the block: its unfinished runs get no outcome, and all of its workers are free again.

        `failed_run`: the runs that caused it.
        """
        reason = f"seed {block.replicate} was given up: {cause}"
        for spec in sorted(
            block.runs, key=lambda spec: spec.ref.name not in failed_run
        ):  # record the failed runs first
            if self._history.runs[spec.ref.name].expected:
                self._out.record(incidents.run_given_up(spec, reason, has_failed=spec.ref.name in failed_run))
        self._free_lanes(block, reason)

    def _free_lanes(self, block: Block, reason: str) -> None:
        self._blocks.remove(block.replicate)
        for spec in block.runs:
            worker = self._workers.on_lane(spec.ref.device)
            if worker.run == spec:
                worker.run = None
                if worker.greeted:
                    worker.cancelled = True
                    self._out.send(worker, messages.Cancel(run_name=spec.ref.name, reason=reason))
                    self._liveness.forget(worker.identity)

    def _block_of(self, run: RunHistory) -> Block:
        return next(block for block in self._history.blocks if block.replicate == run.ref.replicate)
