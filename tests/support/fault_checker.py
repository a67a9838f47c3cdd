"""What must hold of an experiment directory after any faults: everything once, nothing lost, nothing left behind."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from esper_ab.analysis.trained_by import result_hash
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    ExperimentEnded,
    ExperimentStarted,
    Incident,
    MilestoneReleased,
    RunEvaluated,
    RunReady,
)
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import fold

_FORBIDDEN = ("dropped_pair", "inexact_resume")  # by faults that leave a replicate two lives at every milestone


def check(experiment_dir: Path, expected_hash: str) -> list[AnyEvent]:
    """The journal of a finished experiment; AssertionError for whatever was lost, doubled or left behind."""
    events = list(read(experiment_dir / JOURNAL_NAME))
    assert events[-1] == ExperimentEnded(status="finished", detail="")
    check_records(events)
    entries = [event for event in events if isinstance(event, Incident) and event.category in _FORBIDDEN]
    assert not entries, entries
    assert result_hash(fold(events)) == expected_hash
    check_files(experiment_dir, events)
    return events


def check_records(events: Sequence[AnyEvent]) -> None:
    """Every planned milestone of every run is recorded once, in order, before it is released; for finished journals."""
    assert isinstance(events[0], ExperimentStarted)
    recorded: dict[str, int] = {}
    count = Counter[tuple[str, int]]()
    specs = {spec.ref.name: spec for block in events[0].plan.blocks for spec in block.runs}
    for event in events:
        match event:
            case RunReady():
                assert event.milestone <= max(0, recorded.setdefault(event.run.name, 0))
            case EpisodeRecorded() | RunEvaluated():
                name = event.record.run.name
                at = event.record.episode + 1 if isinstance(event, EpisodeRecorded) else specs[name].episodes + 1
                count[name, at] += 1
                assert recorded[name] == at - 1, f"milestone {at} of {name} after milestone {recorded[name]}"
                recorded[name] = at
            case MilestoneReleased():
                for name in event.runs:
                    assert recorded[name] >= event.milestone, (
                        f"milestone {event.milestone} of {name} was released unrecorded"
                    )
    wanted = {(name, milestone) for name, spec in specs.items() for milestone in range(1, spec.episodes + 2)}
    assert set(count) == wanted, f"lost: {sorted(wanted - set(count))}"
    assert set(count.values()) == {1}, "recorded twice"


def check_files(experiment_dir: Path, events: Sequence[AnyEvent]) -> None:
    """The last checkpoint of every run is what was recorded of it, and no half-written file is left."""
    for run in fold(events).runs.values():
        for checkpoint in run.checkpoints[-1:]:
            data = (experiment_dir / checkpoint.file).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (checkpoint.size_bytes, checkpoint.sha256)
    unfinished = [path.name for path in experiment_dir.rglob(".*") if path.is_file() and path.name != ".lock"]
    assert not unfinished, unfinished


def alive_in_session(session: int) -> list[str]:
    """Living processes of a session: pid and command line."""
    found = []
    for process in psutil.process_iter(["status", "cmdline"]):
        with suppress(ProcessLookupError):
            if os.getsid(process.pid) == session and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid}: {process.info['cmdline']}")
    return found
