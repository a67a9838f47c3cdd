"""The state of a run's trackers, read from the trackers' own files. Light; loads no tracker's library."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.trackers.settings import Name, wanted
from esper_ab.trackers.state import TrackerProgress, TrackerState, at_work, read_progress, read_settings


class TrackerNow(msgspec.Struct, frozen=True, kw_only=True):
    """One tracker of an experiment directory."""

    tracker: str
    state: TrackerState | Literal["gone"]  # of its last process; gone: it was at work, but is no longer
    lines: int  # journal lines passed on, as of a few seconds ago
    where: str
    detail: str  # of a failure, one line


def tracking_now(experiment_dir: Path) -> tuple[TrackerNow, ...]:
    """Return the progress of every tracker; () if there are no trackers or the settings are unreadable."""
    try:
        return tuple(_read_tracker(experiment_dir, name) for name in wanted(read_settings(experiment_dir)))
    except UsageError:  # unreadable settings, which are reported when tracking is started
        return ()


def _read_tracker(experiment_dir: Path, name: Name) -> TrackerNow:
    progress = read_progress(experiment_dir, name) or TrackerProgress(state="following")
    gone = progress.state == "following" and not at_work(experiment_dir, name)
    return TrackerNow(
        tracker=name,
        state="gone" if gone else progress.state,
        lines=progress.lines,
        where=progress.where,
        detail=progress.detail,
    )


def tracking_text(experiment_dir: Path, trackers: tuple[TrackerNow, ...]) -> list[str]:
    """Describe each tracker in one line."""
    return [f"  tracker {visible_line(_line(experiment_dir, tracker))}" for tracker in trackers]


def _line(experiment_dir: Path, tracker_state: TrackerNow) -> str:
    line = f"{tracker_state.tracker}: {tracker_state.state}, {counted(tracker_state.lines, 'journal line')}"
    if tracker_state.where:
        line += f" in {tracker_state.where}"
    if tracker_state.state not in ("failed", "gone"):
        return line
    if tracker_state.detail:
        line += f": {tracker_state.detail}"
    return f"{line}; `{shell_command('track', experiment_dir)}` adds what is missing"
