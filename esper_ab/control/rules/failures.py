"""Failures of users' programs: which ones are the same, and what is said about them.

A failure is the same as another one if both have the same *cause*: the exit status and the last line of a command, or
the exception of a Python trainer, without numbers, paths and addresses, which differ between runs. The worker makes
the cause. A run that gives no sign of life is a failure, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from esper_ab.contracts.errors import WorkerFailed, WorkerHung
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.wording import listed
from esper_ab.control.rules.worker_state import Fault
from esper_ab.journal.fold import RunHistory

_HUNG = "it gave no sign of life"
_NAMED = 3  # runs in a message


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failure of a user's program."""

    cause: str
    how: str  # how the worker ended
    line: str  # which worker ended, how and where
    log: str  # the end of the run's log, after a line with the log's path; "" for none
    kind: type[WorkerFailed | WorkerHung]

    @property
    def account(self) -> str:
        return f"{self.line}\n{self.log}" if self.log else self.line


def cause_of(fault: Fault, run: RunHistory, *, hung: bool) -> str:
    """Return the cause of a worker's end; "" if it was not the user's program, or if the user must act first."""
    if run.spec.trainer is None or fault.stops_experiment:
        return ""
    if hung and not fault.cause:
        return _HUNG
    return fault.cause


class Failures:
    """The runs that failed, by cause; those before the last completion of a seed are forgotten."""

    def __init__(self) -> None:
        self._times: Counter[tuple[str, RunRef]] = Counter()  # by cause and run
        self._complete_then: dict[str, dict[RunRef, int]] = {}  # cause -> run -> seeds that were complete

    def add(self, run: RunRef, cause: str, complete: int) -> tuple[tuple[RunRef, ...], int]:
        """Add a failure; return the other runs that failed so since the last completion, and this run's failures.

        `complete`: the number of seeds that are complete.
        """
        self._times[cause, run] += 1
        runs = self._complete_then.setdefault(cause, {})
        runs[run] = complete
        others = tuple(other_run for other_run, then in runs.items() if other_run != run and then == complete)
        return others, self._times[cause, run]


def is_of_the_program(runs: Collection[RunRef], complete: int) -> bool:
    """Whether the program is at fault if these runs failed in the same way, and not their seeds or their setting.

    It is if the failure has struck two seeds before any was complete. Once seeds are complete, the program works for
    some: then the failure must strike several groups, in more seeds than are complete.
    """
    seeds = {run.replicate for run in runs}
    if not complete:
        return len(seeds) > 1
    groups = {run.group_id for run in runs}
    return len(groups) > 1 and len(seeds) > complete


def first(run: RunRef, failure: Failure) -> str:
    """Return the warning for the first failure of a run."""
    return f"{run.name} failed and is tried again: {failure.cause}{_log_of(failure)}"


def repeated(runs: tuple[RunRef, ...], failure: Failure) -> WorkerFailed | WorkerHung:
    """Return the error that ends the experiment after several runs failed in the same way."""
    names = [run.name for run in runs]
    if len(names) <= _NAMED:
        names_words = listed(names)
    else:
        names_words = f"{', '.join(names[:_NAMED])} and others"
    line = f"{names_words} failed in the same way, so the experiment ends, with every seed kept: {failure.cause}"
    return failure.kind(f"{line}\n{failure.log}" if failure.log else line)


def _log_of(failure: Failure) -> str:
    log_file = failure.log.partition("\n")[0].removeprefix("the end of ").removesuffix(":")
    return f"; its output is in {log_file}" if log_file else ""
