"""The processes of trackers beside an experiment: starting them, waiting for them, saying what became of them.

Light: a tracker's library is loaded in its own process only.
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
from esper_ab.contracts.wording import shell_command, visible_line
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
_SILENT_S = 15.0  # of `fill`, before it warns that nothing has been told


class Trackers:
    """An observer that starts the trackers once there is a journal to follow, and warns when one has failed."""

    def __init__(self, experiment_dir: Path, tracking: Tracking) -> None:
        self._experiment_dir, self._tracking = experiment_dir, tracking
        self._started: str | None = None  # what marks the progress of what was started here; "": nothing could be
        self._unheard = set(wanted(tracking))  # those that have not failed so far

    def observe(self, event: AnyEvent | Progress | str) -> None:
        """Take one event; called on the observers' thread, never on the barrier's path."""
        if self._started is None and isinstance(event, Event):
            self._started = start_tracking(self._experiment_dir, self._tracking)
        elif self._started and isinstance(event, MilestoneReleased):
            self._warn_of_failures()

    def settle(self, kind: type[BaseException] | None, *error: object) -> None:
        """After a run that succeeded, wait a little for the trackers and name those that are not done.

        An exit callback of ExitStack: `kind` is the exception that ended the run, after which nothing is awaited.
        """
        if kind is not None or not self._started:
            return
        deadline = time.monotonic() + _PATIENCE_S
        left = set(self._unheard)
        with suppress(KeyboardInterrupt):
            while left and time.monotonic() < deadline:
                left = {name for name in left if self._works(name)}
                time.sleep(_POLL_S if left else 0)
        self._warn_of_failures()
        for name in sorted(self._unheard):
            progress = self._progress(name)
            if name in left:
                log = shell_command("logs", self._experiment_dir, f"tracker-{name}")
                _warn(f"{name} goes on with what is left; `{log}` shows it")
            elif progress is None or progress.state != "done":
                _warn(_describe_stop(self._experiment_dir, name, "its process is gone"))

    def _works(self, name: Name) -> bool:
        progress = self._progress(name)  # before the lock, which it takes first and lets go of last
        if progress is None or progress.state == "starting":
            return True
        return progress.state == "following" and at_work(self._experiment_dir, name)

    def _progress(self, name: Name) -> TrackerProgress | None:
        """Progress of the process that was started here; None as long as it has reported nothing."""
        return read_progress(self._experiment_dir, name, self._started)

    def _warn_of_failures(self) -> None:
        for name in sorted(self._unheard):
            progress = self._progress(name)
            if progress is not None and progress.state == "failed":
                self._unheard.discard(name)
                _warn(_describe_stop(self._experiment_dir, name, progress.detail))


def start_tracking(experiment_dir: Path, tracking: Tracking) -> str:
    """Remember `tracking` and start one process per tracker, which follows the journal of `experiment_dir` to its end.

    `experiment_dir` exists; its journal may be a few seconds away. The processes have no terminal, no parent and low
    priority; their output is in EXPERIMENT/logs. Raises nothing: what cannot be started is one line on stderr.
    Libraries that are absent are refused by `check_tracking`, which is to be called before the experiment directory is
    made. Returns the word that the progress of these processes is marked with, "" when they could not be started.
    """
    started = uuid4().hex
    try:
        save_settings(experiment_dir, tracking)
        for name in wanted(tracking):
            write_progress(experiment_dir, name, TrackerProgress(state="starting", started=started))
            _begin(experiment_dir, name, "--live", started, outlives=True).wait()
    except OSError as error:
        later = shell_command("track", experiment_dir)
        _warn(f"trackers cannot be started ({error}); the run goes on, `{later}` can do it later")
        return ""
    return started


def fill(experiment_dir: Path, names: Sequence[Name], *, live: bool) -> dict[Name, TrackerProgress]:
    """Run the trackers side by side over the journal of `experiment_dir` and wait for them; how far each has come.

    `live`: until the experiment ends. A tracker that failed has the state "failed" and a detail of one line.
    """
    started = uuid4().hex
    children = {name: _begin(experiment_dir, name, *(("--live",) if live else ()), started) for name in names}
    try:
        statuses = {name: _wait(experiment_dir, name, child, started) for name, child in children.items()}
    except BaseException:
        for child in children.values():
            child.kill()
            child.wait()
        raise
    return {name: _outcome(experiment_dir, name, status, started) for name, status in statuses.items()}


def _begin(experiment_dir: Path, name: Name, *words: str, outlives: bool = False) -> subprocess.Popen[bytes]:
    """Start a tracker's process, with one thread of each library, because the cores are the training's.

    One that `outlives` this process is started by a shell that leaves at once, so that nobody has to wait for it.
    """
    where = str(experiment_dir.absolute())
    line = child_command("esper_ab.trackers.process", where, name, *words, outlives=outlives)
    shell = ["sh", "-c", '"$@" </dev/null &', "sh"] if outlives else []
    with os.fdopen(open_log(experiment_dir, name), "ab") as log:
        return subprocess.Popen(
            [*shell, *line], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=outlives,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )  # fmt: skip


def _outcome(experiment_dir: Path, name: Name, status: int, started: str) -> TrackerProgress:
    """Last progress of a tracker's process that ended with `status`."""
    progress = read_progress(experiment_dir, name, started)
    if progress is None or (status and not progress.detail):
        return TrackerProgress(state="failed", detail=f"its process ended with {status}")
    return msgspec.structs.replace(progress, state="failed") if status else progress


def _wait(experiment_dir: Path, name: Name, child: subprocess.Popen[bytes], started: str) -> int:
    """Exit status of a tracker's process; warns when it takes long before it has told anything."""
    with suppress(subprocess.TimeoutExpired):
        return child.wait(_SILENT_S)
    progress = read_progress(experiment_dir, name, started)
    if progress is None or not progress.lines:
        server = server_of(name, read_settings(experiment_dir)) if progress else ""
        reached = f"can {server} be reached? Or " if server else ""
        why = f"{reached}its library takes long to load where much else runs"
        _warn(f"{name} has told nothing for {_SILENT_S:.0f} s and goes on trying: {why}")
    return child.wait()


def _describe_stop(experiment_dir: Path, name: str, why: str) -> str:
    track = shell_command("track", experiment_dir)
    return f"{name} has stopped: {why}; the experiment is not concerned, `{track}` fills in what is missing"


def _warn(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"warning: {visible_line(text)}\n")
