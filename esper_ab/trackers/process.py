"""`python -m esper_ab.trackers.process EXPERIMENT NAME [--live] STARTED`: one tracker, in a process of its own.

The process isolates the side effects of a tracker's library. The parent recognises this process's progress by STARTED,
which may be any word. Any failure here becomes one line in EXPERIMENT/logs/tracker-NAME.log and in
EXPERIMENT/tracking/NAME.json. With --live the process ends by itself after the experiment, even if a library hangs.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import msgspec

from esper_ab.contracts.visible import visible_line
from esper_ab.journal.lock import holder
from esper_ab.trackers.following import tell
from esper_ab.trackers.settings import NAMES, Name, without_credentials
from esper_ab.trackers.state import TrackerProgress, read_progress, read_settings, take, write_progress
from esper_ab.trackers.tracker import Tracker

_NICE = 10  # training has priority
_LOCK_S = 600.0  # time for an earlier coordinator's tracker to end
_END_S = 120.0  # longest time without progress after the experiment has ended
_WATCH_S = 1.0
_SAY_S = 2.0  # between two updates of the progress file
# Disables the libraries' own telemetry.
_QUIET = {"WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true", "DO_NOT_TRACK": "true"}


class _Work:
    """Runs one tracker and keeps its progress file."""

    def __init__(self, experiment_dir: Path, name: Name, start_id: str) -> None:
        self._experiment_dir = experiment_dir
        self._name = name
        progress_before = read_progress(experiment_dir, name)
        destination = progress_before.where if progress_before else ""
        self._progress = TrackerProgress(state="starting", where=destination, pid=os.getpid(), started=start_id)
        self._moved_at = time.monotonic()
        self._reported_at = -_SAY_S

    def carry_out(self, *, live: bool) -> int:
        """Run the tracker; return the exit status."""
        try:
            self._say(state="following")
            os.environ.update(_QUIET)
            tell(self._experiment_dir, read_settings(self._experiment_dir), self._make, self._moved, live=live)
            self._say(state="done")
        except OSError as error:
            return self.fail(f"{error.filename or type(error).__name__}: {error.strerror or error}")
        except BaseException as error:  # noqa: BLE001 the border of this process: a library may raise anything
            return self.fail(f"{type(error).__name__}: {error}")
        return 0

    def fail(self, reason: str) -> int:
        """Report a failure in one line, as far as a full disk permits; return the exit status.

        Credentials are removed, because a library's error may include an address that contains them.
        """
        line = visible_line(" ".join(without_credentials(reason).split()))[:500]
        with suppress(OSError):
            sys.stderr.write(f"error: {self._name}: {line}\n")
            sys.stderr.flush()
        with suppress(OSError):
            self._say(state="failed", detail=line)
        return 1

    def watch(self) -> None:
        """End the process once the experiment has ended and progress has stopped. Runs on a thread."""
        free_since: float | None = None
        while True:
            time.sleep(_WATCH_S)
            now_s = time.monotonic()
            if holder(self._experiment_dir) is not None:
                free_since = None
            elif free_since is None:
                free_since = now_s
            if free_since is not None and now_s - max(free_since, self._moved_at) > _END_S:
                os._exit(self.fail(f"no progress for {_END_S:.0f} s after the run ended"))

    def _make(self, name: str, date: str) -> Tracker:
        """Make the tracker for an experiment with this name and start date."""
        tracker: Tracker
        if self._name == "wandb":
            from esper_ab.trackers.wandb_runs import WandbRuns  # with its library, which no other tracker loads

            tracker = WandbRuns(self._experiment_dir, name, date, read_settings(self._experiment_dir))
        else:
            from esper_ab.trackers.tensorboard_files import TensorBoardFiles  # likewise

            tracker = TensorBoardFiles(self._experiment_dir)
        self._say(where=tracker.where)
        return tracker

    def _moved(self, lines: int) -> None:
        self._moved_at = time.monotonic()
        self._progress = msgspec.structs.replace(self._progress, lines=lines)
        if self._moved_at - self._reported_at >= _SAY_S:
            self._say()

    def _say(self, **changes: str) -> None:
        """Write the progress, with `changes` to its fields."""
        self._progress = msgspec.structs.replace(self._progress, **changes)
        write_progress(self._experiment_dir, self._name, self._progress)
        self._reported_at = time.monotonic()


def main(experiment_dir: Path, name: Name, *, live: bool, start_id: str = "") -> int:
    """Run a tracker; return 0 if it has stored everything, 1 after a failure, 3 if another process runs it."""
    os.nice(_NICE)
    warnings.simplefilter("ignore")  # the libraries' warnings
    deadline = time.monotonic() + (_LOCK_S if live else 0.0)
    while (lock := take(experiment_dir, name)) is None:
        if time.monotonic() > deadline:
            return 3
        time.sleep(_WATCH_S)
    work = _Work(experiment_dir, name, start_id)
    if live:
        threading.Thread(target=work.watch, daemon=True).start()
    status = work.carry_out(live=live)
    os.close(lock)
    return status


if __name__ == "__main__":
    tracker_name = next(name for name in NAMES if name == sys.argv[2])
    status = main(Path(sys.argv[1]), tracker_name, live="--live" in sys.argv[3:], start_id=sys.argv[-1])
    sys.stdout.flush()
    os._exit(status)  # skips the libraries' exit handlers, which may hang
