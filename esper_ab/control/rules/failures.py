"""Failures of users' programs: which ones are the same, and what is said about them.

A failure is the same as another one if both have the same *masked cause*: the exit status and the last line of a
command, or the exception of a Python trainer, without numbers, paths and addresses, which differ between runs. Messages
show the cause as the program wrote it. The worker makes both. A run that gives no sign of life is a failure, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from esper_ab.contracts.errors import WorkerFailed, WorkerHung
from esper_ab.contracts.failure_cause import UNKNOWN, Cause
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.wording import listed
from esper_ab.control.rules.worker_state import Fault
from esper_ab.journal.fold import RunHistory

_HUNG = Cause(masked="it gave no sign of life", text="it gave no sign of life")
_NAMED = 3  # runs in a message


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failure of a user's program."""

    cause: Cause
    how: str  # how the worker ended
    line: str  # which worker ended, how and where
    log: str  # the end of the run's log, after a line with the log's path; "" for none
    kind: type[WorkerFailed | WorkerHung]

    @property
    def account(self) -> str:
        return f"{self.line}\n{self.log}" if self.log else self.line


@dataclass(frozen=True, kw_only=True)
class Alike:
    """The runs that have failed in the same way since the last completion of a seed."""

    others: tuple[RunRef, ...]  # without the run that has just failed
    times: int  # how often the run that has just failed has failed so
    same_words: bool  # whether the program wrote exactly the same in all of them
    outlived: int  # seeds that were at work at the first of these failures, still are, and have not failed so


def cause_of(fault: Fault, run: RunHistory, *, hung: bool) -> Cause:
    """Return the cause of a worker's end; UNKNOWN if it was not the program, or if the user must act first."""
    if run.spec.trainer is None or fault.stops_experiment:
        return UNKNOWN
    if hung and fault.cause == UNKNOWN:
        return _HUNG
    return fault.cause


@dataclass(kw_only=True)
class _SinceCompletion:
    """The failures by one masked cause since a seed was last completed."""

    complete: int  # seeds that were complete then
    at_work: frozenset[int]  # seeds that were at work at the first of these failures
    texts: dict[RunRef, str]  # of each run that has failed, what the program wrote last


class Failures:
    """The runs that failed, by masked cause; those before the last completion of a seed are forgotten."""

    def __init__(self) -> None:
        self._times: Counter[tuple[str, RunRef]] = Counter()  # by masked cause and run
        self._since: dict[str, _SinceCompletion] = {}  # by masked cause

    def add(self, run: RunRef, cause: Cause, *, complete_seeds: int, at_work: Collection[int]) -> Alike:
        """Add a failure of `run`, and return what it is alike to.

        `complete_seeds`: the number of seeds that are complete; `at_work`: those in progress.
        """
        self._times[cause.masked, run] += 1
        since_completion = self._since.get(cause.masked)
        if since_completion is None or since_completion.complete != complete_seeds:
            since_completion = _SinceCompletion(complete=complete_seeds, at_work=frozenset(at_work), texts={})
            self._since[cause.masked] = since_completion
        since_completion.texts[run] = cause.text
        failed_seeds = {failed.replicate for failed in since_completion.texts}
        return Alike(
            others=tuple(failed for failed in since_completion.texts if failed != run),
            times=self._times[cause.masked, run],
            same_words=len(set(since_completion.texts.values())) == 1,
            outlived=len(since_completion.at_work.intersection(at_work) - failed_seeds),
        )


def is_of_the_program(runs: Collection[RunRef], complete_seeds: int, outlived: int) -> bool:
    """Whether the program is at fault if these runs failed in the same way, and not their seeds or their setting.

    It is if the failure has struck two seeds or more, and more than those for which the program works: those that are
    `complete_seeds`, and those that have `outlived` the failure (see `Alike`). Once seeds are complete, the failure
    must also strike several groups.
    """
    seeds = {run.replicate for run in runs}
    groups = {run.group_id for run in runs}
    return len(seeds) > max(1, complete_seeds + outlived) and (not complete_seeds or len(groups) > 1)


def first(run: RunRef, failure: Failure) -> str:
    """Return the warning for the first failure of a run."""
    return f"{run.name} failed and is tried again: {failure.cause.text}{_log_of(failure)}"


def repeated(runs: tuple[RunRef, ...], failure: Failure, *, same_words: bool) -> WorkerFailed | WorkerHung:
    """Return the error that ends the experiment after several runs failed in the same way, the last one by `failure`.

    `same_words`: whether the program wrote exactly the same in all of them; else the last one is an example.
    """
    names = [run.name for run in runs]
    if len(names) <= _NAMED:
        run_words = listed(names)
    else:
        run_words = f"{', '.join(names[:_NAMED])} and others"
    example_words = "" if same_words else f"for example in {names[-1]}: "
    line = (
        f"{run_words} failed in the same way, so the experiment ends, with every seed kept: "
        f"{example_words}{failure.cause.text}"
    )
    return failure.kind(f"{line}\n{failure.log}" if failure.log else line)


def _log_of(failure: Failure) -> str:
    log_file = failure.log.partition("\n")[0].removeprefix("the end of ").removesuffix(":")
    return f"; its output is in {log_file}" if log_file else ""
