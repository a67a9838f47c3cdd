"""Weights & Biases tracker: one project per experiment, one W&B run per esper run, and one for the comparison.

Run ids follow from the journal. Online, the server returns the step that a run has reached, and only later steps are
sent. Offline there is no server, so an incomplete run is replaced by a new one. The complete runs are listed in
EXPERIMENT/tracking/wandb_runs.json.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import wandb

from esper_ab.contracts.files_below import folder_below, write_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.settings.parse import nest
from esper_ab.trackers.numbers import identity
from esper_ab.trackers.settings import NOT_IN_A_PROJECT, PROJECT_CHARS, Tracking
from esper_ab.trackers.state import FOLDER as STATE_FOLDER
from esper_ab.trackers.tracker import COMPARISON, Conclusion, Subject

DONE_NAME = "wandb_runs.json"
_DONE_FILE = f"{STATE_FOLDER}/{DONE_NAME}"
_NOT_IN_A_PROJECT = re.compile(f"[{re.escape(NOT_IN_A_PROJECT)}]")
_decode_done = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


class WandbRuns:
    """Tracker for Weights & Biases, as defined in `trackers/fold.py`."""

    def __init__(self, experiment_dir: Path, name: str, date: str, tracking: Tracking) -> None:
        self._experiment_dir = experiment_dir
        self._name = name
        self._tracking = tracking
        default = _NOT_IN_A_PROJECT.sub("_", f"ab_test_{name}")[: PROJECT_CHARS - len(date) - 1]
        self._project = tracking.wandb_project or f"{default}_{date}"
        self._destination = "/".join((tracking.wandb, tracking.wandb_entity, self._project))
        self.where = self._project
        if tracking.wandb == "offline":
            self.where = str(experiment_dir / "wandb")
        self._done = self._read_done()
        self._open: dict[str, Any] = {}  # W&B runs in progress; a new one has stored no step

    def begin(self, subject: Subject) -> None:
        if subject.key != COMPARISON and not self._is_done(subject):  # the comparison has no data before its conclusion
            self._start(subject)

    def log(self, subject: Subject, step: int, numbers: dict[str, float], time_ms: int) -> None:
        run = self._open.get(subject.key)
        if run is not None and step >= run.starting_step:
            run.log({**numbers, "_timestamp": time_ms / 1000}, step=step)

    def conclude(self, subject: Subject, conclusion: Conclusion) -> None:
        summary = {**conclusion.numbers, **conclusion.words, "outcome": conclusion.state}
        mark = identity(msgspec.json.encode(summary, order="sorted").decode())
        if subject.key == COMPARISON and not self._is_done(subject, mark):
            self._start(subject)
        run = self._open.pop(subject.key, None)
        if run is None:
            return
        run.summary.update(summary)
        run.finish(exit_code=0 if conclusion.state == "finished" else 1)
        self._done[subject.key] = {"id": subject.id, "to": self._destination, "mark": mark}
        write_below(self._experiment_dir, _DONE_FILE, msgspec.json.encode(self._done))

    def close(self) -> None:
        for run in self._open.values():
            run.finish(exit_code=1)

    def _start(self, subject: Subject) -> None:
        offline = self._tracking.wandb == "offline"
        folder_below(self._experiment_dir, "wandb")
        if offline:
            self._remove_unfinished(subject)
        self._open[subject.key] = wandb.init(
            mode="offline" if offline else "online",
            project=self._project,
            entity=self._tracking.wandb_entity or None,
            group=self._name,
            job_type=subject.group or COMPARISON,
            id=subject.id,
            name=subject.key,
            tags=list(subject.tags),
            notes=self._tracking.description or None,
            config=nest(subject.settings),
            dir=str(self._experiment_dir),
            reinit="create_new",
            resume=None if offline else "allow",
            settings=wandb.Settings(  # nothing but the logged data: no console, code, machine statistics or environment
                silent=True,
                console="off",
                disable_git=True,
                disable_code=True,
                save_code=False,
                x_disable_stats=True,
                x_disable_meta=True,
                x_save_requirements=False,
            ),
        )

    def _remove_unfinished(self, subject: Subject) -> None:
        """Remove the files of an earlier attempt at this run, except those uploaded with `wandb sync`."""
        for folder in (self._experiment_dir / "wandb").glob(f"offline-run-*-{subject.id}"):
            if not any(folder.glob("*.synced")):
                shutil.rmtree(folder)

    def _is_done(self, subject: Subject, mark: str | None = None) -> bool:
        """True if the run still exists and was written completely, with the conclusion that has this mark."""
        done_subject = self._done.get(subject.key)
        if done_subject is None or done_subject["id"] != subject.id or done_subject["to"] != self._destination:
            return False
        if mark is not None and mark != done_subject["mark"]:
            return False
        if self._tracking.wandb != "offline":
            return True
        return any((self._experiment_dir / "wandb").glob(f"offline-run-*-{subject.id}"))

    def _read_done(self) -> dict[str, dict[str, str]]:
        try:
            return _decode_done(read_regular(self._experiment_dir / _DONE_FILE))
        except (OSError, *UNREADABLE):
            return {}  # then every run is checked again
