"""Lost workers: what each loss means for the run and the experiment, and the warning to the user.

A loss counts as a death of the run only if the worker was at work on it and nothing else was to blame.
"""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.contracts.errors import EsperError, WorkerFailed, WorkerHung
from esper_ab.contracts.failure_cause import UNKNOWN, Cause
from esper_ab.control.rules import commands, failures, incidents
from esper_ab.control.rules.blocks import BlocksInProgress
from esper_ab.control.rules.deaths import Deaths, any_complete, number_complete
from esper_ab.control.rules.failures import Failure, Failures
from esper_ab.control.rules.giving_up import Dropped, GivingUp
from esper_ab.control.rules.liveness import Liveness
from esper_ab.control.rules.outbox import Outbox
from esper_ab.control.rules.worker_state import Fault, WorkerState
from esper_ab.journal.fold import History, RunHistory

_NONE_KNOWN = Fault(text="")  # of a worker that ended by itself or gave no sign of life


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The end of a worker."""

    worker: WorkerState
    run: RunHistory | None  # that it worked on
    how: str  # the way in which it ended
    where: str  # what it was doing
    log: str  # the end of its log; "" for none
    hung: bool
    blameless: bool  # the node, a failed start or a full disk ended it

    @property
    def fault(self) -> Fault:
        return self.worker.fault or _NONE_KNOWN

    @property
    def line(self) -> str:
        if self.fault.stops_experiment:  # what it reported ends with the remedy
            return f"{self.worker.title}, {self.where}, {self.how}"
        return f"{self.worker.title} {self.how}, {self.where}"

    @property
    def last_words(self) -> str:
        return self.log or self.fault.traceback

    @property
    def account(self) -> str:
        """The message to the user: one line and, unless the fault says all, the last lines of the log."""
        if self.last_words and not self.fault.says_all:
            return f"{self.line}\n{self.last_words}"
        return self.line

    @property
    def kind(self) -> type[WorkerFailed | WorkerHung]:
        return WorkerHung if self.hung else WorkerFailed


class Losses:
    """Decides what each loss of a worker means."""

    def __init__(
        self,
        history: History,
        outbox: Outbox,
        blocks: BlocksInProgress,
        liveness: Liveness,
        deaths: Deaths,
        giving_up_rule: GivingUp,
    ) -> None:
        self._history = history
        self._out = outbox
        self._blocks = blocks
        self._liveness = liveness
        self._deaths = deaths
        self._giving_up = giving_up_rule
        self._failures = Failures()

    def judge(self, loss: Loss) -> Dropped | EsperError | None:
        """Record the loss. Return the replicate to give up, or the error that ends the experiment.

        Returns None if the worker is only to be restarted.
        """
        run = loss.run
        worker = loss.worker
        is_in_run = run is not None and worker.greeted and run.evaluation is None
        if run is not None and is_in_run and not loss.blameless:
            cause = failures.cause_of(loss.fault, run, hung=loss.hung)
            if cause != UNKNOWN:
                return self._program_failed(loss, run, cause)
        self._out.record(incidents.death(worker, run, loss.line, loss.last_words, hung=loss.hung))
        ends = loss.fault.stops_experiment or self._is_hopeless(loss)
        self._warn(loss, ends=ends)
        self._liveness.forget(worker.identity)
        if run is None or not worker.greeted:
            return self._handle_outside_run(loss)
        if run.evaluation is not None:
            worker.run = None
            return None
        if loss.blameless:
            self._blocks.died(run)
            return self._handle_outside_run(loss)
        if ends:
            return self._end(loss, run)
        return self._handle_in_run(loss, run)

    def _is_hopeless(self, loss: Loss) -> bool:
        """True if every run would fail as this one did, as far as one can tell before any replicate is complete."""
        if loss.fault.retryable or loss.run is None:
            return False
        return loss.run.expected and not any_complete(self._history)

    def _warn(self, loss: Loss, *, ends: bool) -> None:
        """Warn of the loss, unless it `ends` the experiment, whose error says more.

        The warning is one line if the run's previous loss had the same account.
        """
        is_repeated = False
        if loss.run is not None:
            account = f"{loss.how}\n{loss.fault.traceback or loss.log}"
            is_repeated = self._deaths.record_account(loss.run.ref.name, account)
        if ends:
            return
        if is_repeated:
            self._out.do(commands.Warn(f"{loss.worker.title} ended, {loss.where}, in the same way as before"))
        else:
            self._out.do(commands.Warn(loss.account))

    def _handle_outside_run(self, loss: Loss) -> EsperError | None:
        if self._deaths.count_outside_run(loss.worker.lane):
            return loss.kind(f"{loss.account}\nthat was the third time in a row")
        return None

    def _end(self, loss: Loss, run: RunHistory) -> EsperError:
        """Return the error that ends the experiment.

        Every seed is given up only if the fault says all and the user need not act first. Else no run is lost, and the
        experiment can be resumed.
        """
        if loss.fault.says_all and not loss.fault.stops_experiment:
            return loss.kind(self._giving_up.give_all_up(run, loss.account))
        return loss.kind(loss.account)

    def _handle_in_run(self, loss: Loss, run: RunHistory) -> Dropped | None:
        self._blocks.died(run)
        died_too_often = self._deaths.count_in_run(run.ref.name, run.recorded)
        error = loss.kind(loss.account)
        if not loss.fault.retryable:
            return Dropped(run=run, deaths=1, how=loss.how, error=error)
        if died_too_often:
            return Dropped(run=run, deaths=self._deaths.most, how=loss.how, error=error)
        return None

    def _program_failed(self, loss: Loss, run: RunHistory, cause: Cause) -> Dropped | EsperError | None:
        """Handle the end of a worker by a failure of the user's program: retry, set aside, or end the experiment.

        The full message appears once: with its first run, or at the end of the experiment.
        """
        failure = Failure(cause=cause, how=loss.how, line=loss.line, log=loss.last_words, kind=loss.kind)
        complete_seeds = number_complete(self._history)
        same_failures = self._failures.add(
            run.ref, cause, complete_seeds=complete_seeds, at_work=self._blocks.replicates
        )
        self._out.record(incidents.program_failed(loss.worker, run, failure, same_failures))
        self._liveness.forget(loss.worker.identity)
        failed_runs = (*same_failures.others, run.ref)
        if failures.is_of_the_program(failed_runs, complete_seeds, same_failures.outlived):
            return failures.repeated(failed_runs, failure, same_words=same_failures.same_words)
        if same_failures.times == 1 and not same_failures.others:
            self._out.do(commands.Warn(failures.first(run.ref, failure)))
        self._blocks.died(run)
        died_too_often = self._deaths.count_in_run(run.ref.name, run.recorded)
        same_seed = tuple(other.name for other in same_failures.others if other.replicate == run.ref.replicate)
        if not died_too_often and loss.fault.retryable and same_failures.times == 1 and not same_seed:
            return None
        error = failure.kind(failure.account)
        dropped_run = Dropped(run=run, alike=same_seed, deaths=same_failures.times, how=failure.how, error=error)
        only_this_group = all(other.group_id == run.ref.group_id for other in same_failures.others)
        if complete_seeds and only_this_group:
            return dropped_run
        self._giving_up.set_aside(dropped_run)
        return None
