"""Run experiments with fake workers, and compare disturbed with undisturbed ones."""

import os
import signal
from collections import Counter

from esper_ab.control import experiment_run
from esper_ab.control.reservation import reserved
from esper_ab.journal.events import (
    EpisodeRecorded,
    Incident,
    LookTaken,
    MilestoneReleased,
    PlanExtended,
    RunEvaluated,
    RunReady,
    WorkerStarted,
)
from esper_ab.journal.fold import fold
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.launchers.inline import InlineLauncher
from support.journals.ready_journals import records_of

THREADS = InlineLauncher("support.workers.fake_worker:main_in_thread")


class Watcher:
    """An observer that stores every event and then passes it to `act`."""

    def __init__(self, act=lambda event: None):
        self.events = []
        self._act = act

    def observe(self, event):
        self.events.append(event)
        self._act(event)


class Striking(Watcher):
    """An observer that calls `strike` once on the worker of `run`, when the second episode of the run is recorded."""

    def __init__(self, strike, run="c/0"):
        super().__init__(self._look)
        self._strike = strike
        self._run = run
        self.struck = None

    def _look(self, event):
        if isinstance(event, EpisodeRecorded) and event.record.run.name == self._run and event.record.episode == 1:
            lane = event.record.run.device
            self.struck = next(
                start for start in self.events if isinstance(start, WorkerStarted) and start.device == lane
            )
            self._strike(self.struck)


class PressCtrlC:
    """An observer that sends SIGINT to this process when a block is released from `milestone`."""

    def __init__(self, milestone):
        self._milestone = milestone

    def observe(self, event):
        if isinstance(event, MilestoneReleased) and event.milestone == self._milestone:
            os.kill(os.getpid(), signal.SIGINT)


def run(experiment_dir, plan, *observers, launcher=THREADS, limits=None):
    """Run a whole experiment and return its events."""
    experiment_dir.mkdir(exist_ok=True)
    with reserved(launcher, plan.lanes):
        experiment_run.run(plan, experiment_dir, launcher, observers, limits)
    return events_of(experiment_dir)


def resume(experiment_dir, *observers, launcher=THREADS, limits=None):
    with reserved(launcher, load(experiment_dir).history.plan.lanes):
        experiment_run.resume(experiment_dir, launcher, observers, limits)
    return events_of(experiment_dir)


def events_of(experiment_dir):
    return list(read(experiment_dir / JOURNAL_NAME))


def digests(experiment_dir):
    """Return the digests of every run's records, by the name of the run."""
    runs = load(experiment_dir).history.runs
    records = {name: (*records_of(run), *([run.evaluation] if run.evaluation else [])) for name, run in runs.items()}
    return {name: [record.digest for record in records_of_run] for name, records_of_run in records.items()}


def events_of_kind(kind, events):
    return [event for event in events if isinstance(event, kind)]


def incidents(events, *categories):
    return [entry for entry in events_of_kind(Incident, events) if not categories or entry.category in categories]


def records(events):
    """Return the event of every record by (run, milestone); AssertionError if one was journalled twice."""
    episodes = [
        (event.record.run.name, event.record.episode + 1, event) for event in events_of_kind(EpisodeRecorded, events)
    ]
    evaluations = [(event.record.run.name, -1, event) for event in events_of_kind(RunEvaluated, events)]
    by_milestone = {(run, milestone): event for run, milestone, event in (*episodes, *evaluations)}
    assert len(by_milestone) == len(episodes) + len(evaluations)
    return by_milestone


def conclusions(events):
    """Return the events of looks and extensions, in order."""
    return events_of_kind(LookTaken | PlanExtended, events)


def states(events):
    return {name: run.state for name, run in fold(events).runs.items()}


def resume_points(events):
    """Return, by run, the milestones at which its workers became ready, in order."""
    points = {}
    for event in events_of_kind(RunReady, events):
        points.setdefault(event.run.name, []).append(event.milestone)
    return points


def counts(events):
    return Counter(entry.category for entry in events_of_kind(Incident, events))
