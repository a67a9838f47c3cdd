"""Start the processes of trackers alongside an experiment, wait for them, and report failures.

A tracker's library is loaded only in the tracker's own process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec

from esper_ab.contracts.messages import Progress
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.journal.events import AnyEvent, Event, MilestoneReleased
from esper_ab.trackers.settings import Name, Tracking, server_of, wanted
from esper_ab.trackers.state import (
    TrackerProgress,
    at_work,
    open_log,
    read_progress,
    read_settings,
    save_settings,
    write_progress,
)

_POLL_S = 0.1
_PATIENCE_S = 20.0  # for trackers to catch up at the end of a run, before the command goes on without them
_SILENT_S = 15.0  # time without any progress, after which `fill` warns


class Trackers:
    """Observer that starts the trackers once there is a journal to follow, and warns if a tracker has failed."""

    def __init__(self, experiment_dir: Path, tracking: Tracking) -> None:
        self._experiment_dir = experiment_dir
        self._tracking = tracking
        self._started: str | None = None  # marks the progress of the processes started here; "": none could be started
        self._unheard = set(wanted(tracking))  # trackers that have not failed so far

    def observe(self, event: AnyEvent | Progress | str) -> None:
        """Take one event; called on the observers' thread, never on the barrier's path."""
        if self._started is None and isinstance(event, Event):
            self._started = start_tracking(self._experiment_dir, self._tracking)
        elif self._started and isinstance(event, MilestoneReleased):
            self._warn_of_failures()

    def settle(self, kind: type[BaseException] | None, *error: object) -> None:
        """After a successful run, wait a little for the trackers and name those that are not done.

        Used as an exit callback of ExitStack. `kind`: the exception that ended the run; after an exception, do not
        wait.
        """
        if kind is not None or not self._started:
            return
        deadline = time.monotonic() + _PATIENCE_S
        silent_trackers = set(self._unheard)
        with suppress(KeyboardInterrupt):
            while silent_trackers and time.monotonic() < deadline:
                silent_trackers = {name for name in silent_trackers if self._works(name)}
                if silent_trackers:
                    time.sleep(_POLL_S)
        self._warn_of_failures()
        for name in sorted(self._unheard):
            progress = self._progress(name)
            if name in silent_trackers:
                log = shell_command("logs", self._experiment_dir, f"tracker-{name}")
                _warn(f"{name} has not finished yet; `{log}` shows its progress")
            elif progress is None or progress.state != "done":
                _warn(_describe_stop(self._experiment_dir, name, "its process is gone"))

    def _works(self, name: Name) -> bool:
        progress = self._progress(name)  # read before the lock, which the process takes first and releases last
        if progress is None or progress.state == "starting":
            return True
        return progress.state == "following" and at_work(self._experiment_dir, name)

    def _progress(self, name: Name) -> TrackerProgress | None:
        """Return the progress of the process started here; None until it has reported any."""
        return read_progress(self._experiment_dir, name, self._started)

    def _warn_of_failures(self) -> None:
        for name in sorted(self._unheard):
            progress = self._progress(name)
            if progress is not None and progress.state == "failed":
                self._unheard.discard(name)
                _warn(_describe_stop(self._experiment_dir, name, progress.detail))


def start_tracking(experiment_dir: Path, tracking: Tracking) -> str:
    """Save `tracking` and start one process per tracker, which follows the journal of `experiment_dir` to its end.

    `experiment_dir` exists; its journal may appear a few seconds later. The processes have no terminal, no parent and
    low priority; their output is in EXPERIMENT/logs. Raises nothing: if the start fails, one line is written to stderr.
    Missing libraries are refused by `check_tracking`, which must be called before the experiment directory is made.
    Returns the word that marks the progress of these processes, or "" if they could not be started.
    """
    start_id = uuid4().hex
    try:
        save_settings(experiment_dir, tracking)
        for name in wanted(tracking):
            write_progress(experiment_dir, name, TrackerProgress(state="starting", started=start_id))
            _begin(experiment_dir, name, "--live", start_id, outlives=True).wait()
    except OSError as error:
        later_command = shell_command("track", experiment_dir)
        _warn(f"trackers cannot be started ({error}); the run continues, and `{later_command}` can start them later")
        return ""
    return start_id


def fill(experiment_dir: Path, names: Sequence[Name], *, live: bool) -> dict[Name, TrackerProgress]:
    """Run the trackers in parallel over the journal of `experiment_dir`, wait for them and return their progress.

    `live`: follow the journal until the experiment ends. A tracker that failed has the state "failed" and a one-line
    detail.
    """
    start_id = uuid4().hex
    words = ("--live", start_id) if live else (start_id,)
    children: dict[Name, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            children[name] = _begin(experiment_dir, name, *words)
        statuses = {name: _wait(experiment_dir, name, child, start_id) for name, child in children.items()}
    except BaseException:
        for child in children.values():
            child.kill()
            child.wait()
        raise
    return {name: _outcome(experiment_dir, name, status, start_id) for name, status in statuses.items()}


def _begin(experiment_dir: Path, name: Name, *words: str, outlives: bool = False) -> subprocess.Popen[bytes]:
    """Start a tracker's process, with one thread per library, because the cores are for training.

    If the tracker `outlives` this process, it is started by a shell that exits at once, so that no process has to wait
    for the tracker.
    """
    directory = str(experiment_dir.absolute())
    command = child_command("esper_ab.trackers.process", directory, name, *words, outlives=outlives)
    if outlives:
        command = ["sh", "-c", '"$@" </dev/null &', "sh", *command]
    with os.fdopen(open_log(experiment_dir, name), "ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=outlives,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )


def _outcome(experiment_dir: Path, name: Name, status: int, start_id: str) -> TrackerProgress:
    """Return the last progress of a tracker's process that ended with `status`."""
    progress = read_progress(experiment_dir, name, start_id)
    if progress is None or (status and not progress.detail):
        return TrackerProgress(state="failed", detail=f"its process ended with status {status}")
    if status:
        return msgspec.structs.replace(progress, state="failed")
    return progress


def _wait(experiment_dir: Path, name: Name, child: subprocess.Popen[bytes], start_id: str) -> int:
    """Return the exit status of a tracker's process; warn if it takes long to report any progress."""
    with suppress(subprocess.TimeoutExpired):
        return child.wait(_SILENT_S)
    progress = read_progress(experiment_dir, name, start_id)
    if progress is None or not progress.lines:
        reason = "its library loads slowly on a busy machine"
        if progress is not None and (server := server_of(name, read_settings(experiment_dir))):
            reason = f"{server} may be unreachable, or {reason}"
        _warn(f"{name} has reported nothing for {_SILENT_S:.0f} s and keeps trying: {reason}")
    return child.wait()


def _describe_stop(experiment_dir: Path, name: str, reason: str) -> str:
    track = shell_command("track", experiment_dir)
    return f"{name} has stopped: {reason}; the experiment is unaffected, and `{track}` adds what is missing"


def _warn(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(typeable(f"warning: {visible_line(text)}\n"))
