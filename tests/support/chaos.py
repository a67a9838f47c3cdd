"""Kills and stops workers of an experiment at planned points: an observer of it, or a reader of its journal."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from esper_ab.contracts.messages import Progress
from esper_ab.journal.events import EpisodeRecorded, RunStarted, WorkerStarted
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.load import follow

MOST_AT_ONE_MILESTONE = 2  # a third death at the same milestone would cost the replicate
KINDS = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGSTOP")
_RUNS_PER_FAULT = 2
_WHILE_AT_WORK = 0.75  # share of faults; the others strike between two episodes
_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One signal to the worker of `run_name` while it works towards `milestone`."""

    kind: str
    run_name: str
    milestone: int  # 2 … E+1
    step: int = 0  # strikes at this step of the work or soon after; 0: when the record of the milestone before is there


def plan_faults(rng_seed, runs):
    """Faults for these runs, by rng seed alone: every kind in turn, at most two before one milestone of a run.

    Never in the first episode: how long a step may take is known once somebody has taken some.
    """
    rng = random.Random(rng_seed)
    kinds = rng.sample(KINDS, len(KINDS))
    wanted = max(len(KINDS), len(runs) // _RUNS_PER_FAULT)
    faults, struck = [], Counter()
    while len(faults) < min(wanted, MOST_AT_ONE_MILESTONE * sum(spec.episodes for spec in runs)):
        kind, spec = kinds[len(faults) % len(kinds)], rng.choice(runs)
        milestone = rng.randint(2, max(2, spec.episodes + (kind != "SIGSTOP")))
        step = rng.randint(1, spec.steps) if rng.random() < _WHILE_AT_WORK else 0
        before = struck[spec.ref.name, milestone]
        if before == 0 or (before < MOST_AT_ONE_MILESTONE and step):
            struck[spec.ref.name, milestone] += 1
            faults.append(Fault(kind=kind, run_name=spec.ref.name, milestone=milestone, step=step))
    return tuple(faults)


class Chaos:
    """An observer that strikes once the experiment has come to a fault."""

    def __init__(self, faults):
        self._to_come = list(faults)
        self._pids = {}  # of living workers, by name
        self._workers = {}  # by run
        self.struck = []

    def observe(self, event):
        match event:
            case WorkerStarted():
                self._pids[event.worker] = event.pid
            case RunStarted():
                self._workers[event.run.name] = event.worker
            case EpisodeRecorded():
                self._strike(event.record.run.name, event.record.episode + 2, 0)
            case Progress():
                self._strike(event.run.name, event.milestone, max(1, event.step))

    def _strike(self, run, milestone, step):
        due = next((fault for fault in self._to_come if _is_due(fault, run, milestone, step)), None)
        pid = self._pids.pop(self._workers.get(run), None) if due else None
        if pid is None:
            return
        with suppress(ProcessLookupError):  # it died by itself meanwhile; the fault waits for its successor
            os.kill(pid, signal.Signals[due.kind])
            self._to_come.remove(due)
            self.struck.append(due)


def _is_due(fault, run, milestone, step):
    return (fault.run_name, fault.milestone) == (run, milestone) and (
        step >= fault.step if fault.step else step == 0
    )


@contextmanager
def striking(experiment_dir, *faults):
    """While entered, the workers of the experiment that is carried out there are struck between their episodes."""
    chaos, over = Chaos(faults), threading.Event()

    def read():
        while not (experiment_dir / JOURNAL_NAME).exists():
            if over.wait(_POLL_S):
                return
        events = follow(experiment_dir / JOURNAL_NAME)
        while not over.is_set():
            for event in events:
                chaos.observe(event)
            time.sleep(_POLL_S)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield chaos
    finally:
        over.set()
        reader.join()
