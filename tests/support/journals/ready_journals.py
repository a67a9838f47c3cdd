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
    """Return a journal of six pairs in which shaped is 5 points above simplified."""
    return Synthetic().events()


def same_twice(replicates: int = 6) -> list[AnyEvent]:
    """Return the journal of an A/A test: one group under two names."""
    groups = {"a": Shape(stream="one"), "b": Shape(stream="one")}
    return Synthetic(groups=groups, replicates=replicates).events()


def one_replicate() -> list[AnyEvent]:
    return Synthetic(replicates=1).events()


def three_groups() -> list[AnyEvent]:
    """Return a journal of two learning groups and one whose host never grows."""
    groups = {
        "shaped": Shape(accuracy=74.0),
        "simplified": Shape(accuracy=69.0, mode="simplified", params=500),
        "wait": Shape(accuracy=33.0, controller="wait"),
    }
    return Synthetic(groups=groups).events()


def failed_run(complete_replicates: int = 3) -> list[AnyEvent]:
    """Return a journal of six planned replicates whose last block fails in its second episode: a worker dies."""
    events = planted_effect()
    second_by_run = {
        event.record.run.name: index
        for index, event in enumerate(events)
        if isinstance(event, EpisodeRecorded) and event.record.episode == 1
    }
    shaped_second = second_by_run[f"shaped/{complete_replicates}"]
    simplified_second = second_by_run[f"simplified/{complete_replicates}"]
    incident = Incident(
        category="worker_death", run_name=f"simplified/{complete_replicates}", episode=1, detail="exit code -9"
    )
    end_event = ExperimentEnded(status="failed", detail=f"worker w1 died in simplified/{complete_replicates}")
    return [*events[: min(shaped_second, simplified_second)], events[shaped_second], incident, end_event]


def with_last_run_given_up(
    events: list[AnyEvent], category: Literal["dropped_pair", "cancelled"] = "dropped_pair"
) -> list[AnyEvent]:
    """Return the journal with its last run given up after its training, without an evaluation."""
    index = max(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))
    entry = Incident(
        category=category, run_name=events[index].record.run.name, episode=None, detail="killed by signal 9"
    )
    return [*events[:index], entry, *events[index + 1 :]]


def with_lost_runs(events: list[AnyEvent], lost_runs: dict[str, str]) -> list[AnyEvent]:
    """Return the journal without the evaluations of the runs in `lost_runs`, and with an incident for each of them."""
    other_events = [
        event for event in events if not (isinstance(event, RunEvaluated) and event.record.run.name in lost_runs)
    ]
    entries = [
        Incident(category=category, run_name=run, episode=1, detail="exit code 1")
        for run, category in lost_runs.items()
    ]
    return [*other_events[:-1], *entries, other_events[-1]]


def without_evaluations(events: list[AnyEvent]) -> list[AnyEvent]:
    """Return the journal with every evaluation empty, without a sampled episode."""
    return [
        RunEvaluated(record=msgspec.structs.replace(event.record, episodes=()))
        if isinstance(event, RunEvaluated)
        else event
        for event in events
    ]


def write(experiment_dir: Path, events: list[AnyEvent]) -> Path:
    """Write the events as the journal of `experiment_dir`, as left by a process that has ended; return the directory.

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
    """Return the record of an episode, with seeds and an update, and the record of an evaluation."""
    events = one_replicate()
    episodes = [event.record for event in events if isinstance(event, EpisodeRecorded)]
    evaluations = [event.record for event in events if isinstance(event, RunEvaluated)]
    return max(episodes, key=lambda record: len(record.seed_events)), evaluations[0]


def records_of(run: RunHistory) -> tuple[EpisodeRecord, ...]:
    """Return the complete episode records of a run in order."""
    return tuple(run.episodes[index] for index in sorted(run.episodes))
