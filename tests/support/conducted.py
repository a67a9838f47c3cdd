"""Experiments with fake workers that were disturbed, and what must be the same as in one that was not."""

from __future__ import annotations

from collections import Counter

from esper_ab.control import conduct
from esper_ab.journal.events import EpisodeRecorded, Ledger, LookTaken, PlanExtended, RunEvaluated, RunReady
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import fold
from esper_ab.launchers.inline import InlineLauncher

THREADS = InlineLauncher("support.fake_worker:main_in_thread")


def run(run_dir, plan, *observers, launcher=THREADS, limits=None):
    """The events of a whole experiment."""
    run_dir.mkdir(exist_ok=True)
    conduct.run(plan, run_dir, launcher, observers, limits)
    return events_of(run_dir)


def resume(run_dir, *observers, launcher=THREADS, limits=None):
    conduct.resume(run_dir, launcher, observers, limits)
    return events_of(run_dir)


def events_of(run_dir):
    return list(read(run_dir / JOURNAL_NAME))


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def ledger(events, *categories):
    return [entry for entry in of(Ledger, events) if not categories or entry.category in categories]


def records(events):
    """Every record by run and point, with its checkpoint; AssertionError when one was journalled twice."""
    episodes = [(event.record.run.run, event.record.episode + 1, event) for event in of(EpisodeRecorded, events)]
    evaluations = [(event.record.run.run, -1, event) for event in of(RunEvaluated, events)]
    found = {(run, point): event for run, point, event in (*episodes, *evaluations)}
    assert len(found) == len(episodes) + len(evaluations)
    return found


def conclusions(events):
    """Looks and extensions, in order."""
    return of(LookTaken | PlanExtended, events)


def states(events):
    return {name: run.state for name, run in fold(events).runs.items()}


def taken_up(events):
    """Run -> the points at which its workers were ready, in order."""
    found = {}
    for event in of(RunReady, events):
        found.setdefault(event.run.run, []).append(event.point)
    return found


def counts(events):
    return Counter(entry.category for entry in of(Ledger, events))
