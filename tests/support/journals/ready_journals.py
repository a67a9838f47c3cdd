"""Ready journals of synthetic experiments: a planted effect, an A/A, a failure, any number of groups."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from esper_ab.contracts.records import (
    EpisodeRecord,
    EvaluationRecord,
)
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    ExperimentEnded,
    Incident,
    RunEvaluated,
)
from esper_ab.journal.file import Journal
from esper_ab.journal.fold import RunHistory
from esper_ab.journal.lock import LOCK_NAME
from support.journals.synthetic import Shape, Synthetic


def planted_effect() -> list[AnyEvent]:
    """Shaped above simplified by 5 points, six pairs."""
    return Synthetic().events()


def same_twice(replicates: int = 6) -> list[AnyEvent]:
    """An A/A: two names for one group."""
    groups = {"a": Shape(stream="one"), "b": Shape(stream="one")}
    return Synthetic(groups=groups, replicates=replicates).events()


def one_replicate() -> list[AnyEvent]:
    return Synthetic(replicates=1).events()


def three_groups() -> list[AnyEvent]:
    """Two learning groups and the never-grown host."""
    groups = {
        "shaped": Shape(accuracy=74.0),
        "simplified": Shape(accuracy=69.0, mode="simplified", params=500),
        "wait": Shape(accuracy=33.0, controller="wait"),
    }
    return Synthetic(groups=groups).events()


def failed_run(kept: int = 3) -> list[AnyEvent]:
    """Six replicates planned; the worker of simplified dies in the second episode of the fourth block."""
    events = planted_effect()
    second = {
        event.record.run.name: at
        for at, event in enumerate(events)
        if isinstance(event, EpisodeRecorded) and event.record.episode == 1
    }
    shaped = second[f"shaped/{kept}"]
    simplified = second[f"simplified/{kept}"]
    incident = Incident(category="worker_death", run_name=f"simplified/{kept}", episode=1, detail="exit code -9")
    ended = ExperimentEnded(status="failed", detail=f"worker w1 died in simplified/{kept}")
    return [*events[: min(shaped, simplified)], events[shaped], incident, ended]


def with_last_run_given_up(
    events: list[AnyEvent], category: Literal["dropped_pair", "cancelled"] = "dropped_pair"
) -> list[AnyEvent]:
    """The same journal, its last run given up when all its training was recorded: no evaluation of it."""
    last = max(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))
    entry = Incident(
        category=category, run_name=events[last].record.run.name, episode=None, detail="killed by signal 9"
    )
    return [*events[:last], entry, *events[last + 1 :]]


def with_lost_runs(events: list[AnyEvent], lost: dict[str, str]) -> list[AnyEvent]:
    """The same journal, without the evaluations of these runs, whose categories of incidents are told at its end."""
    kept = [event for event in events if not (isinstance(event, RunEvaluated) and event.record.run.name in lost)]
    entries = [Incident(category=why, run_name=run, episode=1, detail="exit code 1") for run, why in lost.items()]
    return [*kept[:-1], *entries, kept[-1]]


def without_evaluations(events: list[AnyEvent]) -> list[AnyEvent]:
    """The same journal, every evaluation empty: no sampled episode at all."""
    return [
        RunEvaluated(record=msgspec.structs.replace(event.record, episodes=()))
        if isinstance(event, RunEvaluated)
        else event
        for event in events
    ]


def write(experiment_dir: Path, events: list[AnyEvent]) -> Path:
    """`experiment_dir` with these events as its journal, as a process that has ended left it.

    The clock gives the same times in every test.
    """
    experiment_dir.mkdir(parents=True, exist_ok=True)
    clock = itertools.count()
    journal = Journal(
        experiment_dir, wall_clock=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(clock))
    )
    for event in events:
        journal.append(event)
    journal.close()
    (experiment_dir / LOCK_NAME).unlink()
    return experiment_dir


def a_record_of_each_kind() -> tuple[EpisodeRecord, EvaluationRecord]:
    """The last episode and the evaluation of one run, with seeds and an update."""
    events = one_replicate()
    episodes = [event.record for event in events if isinstance(event, EpisodeRecorded)]
    evaluations = [event.record for event in events if isinstance(event, RunEvaluated)]
    return max(episodes, key=lambda record: len(record.seed_events)), evaluations[0]


def records_of(run: RunHistory) -> tuple[EpisodeRecord, ...]:
    """Return the complete episode records of a run in order."""
    return tuple(run.episodes[index] for index in sorted(run.episodes))
