"""Observers that write to stderr immediately: warnings, and with --verbose a line per recorded event."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import UTC, datetime

from esper_ab.contracts.messages import Progress
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible, visible_line
from esper_ab.contracts.wording import counted
from esper_ab.journal import events
from esper_ab.journal.outcomes import mean_outcome

_TOLD = ("restart", "start_delayed", "dropped_pair", "damaged_checkpoint", "inexact_resume")


class Warnings:
    """An observer that writes warnings to the current `sys.stderr`, so that a live view can stay below them."""

    def __init__(self, *, incidents: bool) -> None:
        """Create the observer. If `incidents` is true, incidents are also printed; a live view shows them itself."""
        self._incidents = incidents

    def observe(self, event: events.AnyEvent | Progress | str) -> None:
        if isinstance(event, str):
            with suppress(OSError):  # stderr may be a file on the full disk; reported later in that case
                sys.stderr.write(typeable(f"warning: {visible(event)}\n"))
        elif self._incidents and isinstance(event, events.Incident) and event.category in _TOLD:
            run_words = f"{event.run_name}: " if event.run_name else ""
            sys.stderr.write(typeable(f"warning: {run_words}{visible_line(event.detail)}\n"))


class Narration:
    """An observer that prints a line per event, except for failures, which `Warnings` prints."""

    def observe(self, event: events.AnyEvent | Progress | str) -> None:
        if isinstance(event, str | Progress):
            return
        line = describe_event(event)
        if line:
            with suppress(OSError):
                sys.stderr.write(typeable(f"{datetime.now(UTC).astimezone():%H:%M:%S} {visible_line(line)}\n"))


def describe_event(event: events.AnyEvent) -> str | None:
    """Describe a journalled event in one line; None for events that are of no interest to users."""
    match event:
        case events.WorkerStarted():
            return f"worker {event.worker}/{event.incarnation} on {event.device}: process {event.pid}"
        case events.RunStarted():
            return f"{event.run.name} started on {event.run.device}"
        case events.RunReused():
            return f"{event.run.name} was kept from an earlier experiment"
        case events.RunReady():
            ready_words = f"{event.run.name} ready after {event.warm_up_s:.1f} s"
            if event.milestone:
                return f"{ready_words}, resuming after episode {event.milestone - 1}"
            return ready_words
        case events.EpisodeRecorded(record=record):
            outcome = _number(mean_outcome(record))
            return f"{record.run.name} episode {record.episode}: outcome {outcome}, {record.timing.total_s:.1f} s"
        case events.RunEvaluated(record=evaluation):
            return f"{evaluation.run.name} evaluated: outcome {_number(mean_outcome(evaluation))}"
        case events.LookTaken():
            return f"look after {counted(event.replicates, 'seed')}: {event.outcome}"
        case events.ExperimentEnded():
            detail = f": {event.detail}" if event.detail else ""
            return f"experiment {event.status}{detail}"
    return None


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4g}"
