"""`launch --chaos RNG_SEED`: a rehearsal of faults on one's own machine, with nothing but signals to one's own workers.

What will happen to which run, and when, is drawn before the run begins. A fault strikes in the thread of the
coordinator, between two messages, so its note stands in the ledger before anything that follows from it. Nothing else
of the experiment knows of it: a worker that is killed here is any worker that died.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from esper_ab.contracts.messages import Progress, RunSpec
from esper_ab.control.rules.liveness import Limits
from esper_ab.journal.events import AnyEvent, EpisodeRecorded, Ledger, RunStarted, WorkerStarted

MOST_AT_ONE_MILESTONE = 2  # a third death at the same milestone would cost the replicate
LIMITS = Limits(floor_s=10.0, start_up_s=120.0)  # a stopped worker is found in seconds, not after a minute
_LEAST = 4  # so that every kind of fault happens
_RUNS_PER_FAULT = 2
_WHILE_AT_WORK = 0.75  # share of faults; the others strike between two episodes

Kind = Literal["SIGKILL", "SIGSEGV", "SIGABRT", "SIGSTOP"]
KINDS: tuple[Kind, ...] = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGSTOP")


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True):
    """One signal to the worker of `run` while it works towards `milestone`."""

    kind: Kind
    run_name: str
    milestone: int  # 2 … E+1
    step: int  # strikes at this step of the work or soon after; 0: when the record of the milestone before is written


def plan_faults(rng_seed: int, runs: Sequence[RunSpec]) -> tuple[PlannedFault, ...]:
    """Faults for these runs, by rng seed alone: every kind in turn, at most two before one milestone of a run."""
    rng = random.Random(rng_seed)
    kinds = rng.sample(KINDS, len(KINDS))
    most = MOST_AT_ONE_MILESTONE * sum(spec.episodes for spec in runs)
    faults: list[PlannedFault] = []
    struck = Counter[tuple[str, int]]()
    while len(faults) < min(max(_LEAST, len(runs) // _RUNS_PER_FAULT), most):
        fault = _draw(rng, rng.choice(runs), kinds[len(faults) % len(kinds)])
        before = struck[fault.run_name, fault.milestone]
        if before == 0 or (before < MOST_AT_ONE_MILESTONE and fault.step):
            struck[fault.run_name, fault.milestone] += 1
            faults.append(fault)
    return tuple(faults)


def _draw(rng: random.Random, spec: RunSpec, kind: Kind) -> PlannedFault:
    """Never in the first episode: how long a step may take is known once somebody has taken some."""
    milestone = rng.randint(2, max(2, spec.episodes + (kind != "SIGSTOP")))
    step = rng.randint(1, spec.steps) if rng.random() < _WHILE_AT_WORK else 0
    return PlannedFault(kind=kind, run_name=spec.ref.name, milestone=milestone, step=step)


class Chaos:
    """Faults that strike as the run gets to them; told of everything by the event sink, on the coordinator's thread."""

    def __init__(self, faults: Iterable[PlannedFault]) -> None:
        self._to_come = list(faults)
        self._pids: dict[str, int] = {}  # of living workers, by name
        self._workers: dict[str, str] = {}  # by run
        self.struck: list[PlannedFault] = []

    def after(self, event: AnyEvent | Progress) -> tuple[Ledger, ...]:
        """Strike if a fault is due after this event; what was done, for the ledger."""
        match event:
            case WorkerStarted():
                self._pids[event.worker] = event.pid
            case RunStarted():
                self._workers[event.run.name] = event.worker
            case EpisodeRecorded():
                return self._strike(event.record.run.name, event.record.episode + 2, 0)
            case Progress():
                return self._strike(event.run.name, event.milestone, max(1, event.step))
        return ()

    @property
    def summary(self) -> str:
        """One line: what was done, and what was left undone because the run never came to it."""
        counts = Counter(fault.kind for fault in self.struck)
        done = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "none"
        left = f"; {len(self._to_come)} planned for work that never came" if self._to_come else ""
        return f"{len(self.struck)} faults rehearsed ({done}){left}"

    def _strike(self, run: str, milestone: int, step: int) -> tuple[Ledger, ...]:
        due = next((fault for fault in self._to_come if _is_due(fault, run, milestone, step)), None)
        worker = self._workers.get(run, "")
        if due is None or worker not in self._pids:
            return ()
        pid = self._pids.pop(worker)  # whoever is told next has said Hello after this
        try:
            os.kill(pid, signal.Signals[due.kind])
        except ProcessLookupError:
            return ()  # it died by itself meanwhile; the fault waits for its successor
        self._to_come.remove(due)
        self.struck.append(due)
        where = f"at step {step}" if step else "as the record before was written"
        detail = f"chaos: {due.kind} to {worker} (pid {pid}) on the way to milestone {milestone}, {where}"
        return (Ledger(category="chaos", run_name=run, episode=milestone - 1, detail=detail),)


def _is_due(fault: PlannedFault, run: str, milestone: int, step: int) -> bool:
    if (fault.run_name, fault.milestone) != (run, milestone):
        return False
    return step >= fault.step if fault.step else step == 0
