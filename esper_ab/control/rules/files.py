"""The files of workers that share none with the coordinator: which of theirs are taken, and where they go.

Every path is made here, of the run that was assigned and the worker's order; a message only says what kind of file it
is about. A record that names a file counts once that file was stored.
"""

from __future__ import annotations

from esper_ab.contracts.checkpoint_files import file_of
from esper_ab.contracts.messages import (
    LOG_BYTES,
    EpisodeFinished,
    Evaluated,
    Fetch,
    FileMessage,
    Piece,
    RunSpec,
    Upload,
)
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.trainer import is_command
from esper_ab.control.rules.runs import assignment
from esper_ab.control.rules.transfers import AnnouncedFile, Downloads, Filed, PieceWritten, Read, Result, Step, Uploads
from esper_ab.control.rules.validation import Rejected, Report
from esper_ab.control.rules.worker_state import Workers, WorkerState
from esper_ab.journal.fold import History


class WorkerFiles:
    """Of all workers of an experiment."""

    def __init__(self, history: History, workers: Workers) -> None:
        self._history, self._workers = history, workers
        self._uploads, self._downloads = Uploads(), Downloads()

    def heard(self, worker: WorkerState, message: FileMessage) -> list[Step]:
        """Take a message about a file; Rejected when the worker has no business with it."""
        if worker.order.shares_files:
            raise Rejected("sends files, although it sees the experiment directory")
        match message:
            case Upload():
                announced = self._announced(worker, message)
                return [] if announced is None else self._uploads.announce(announced)
            case Fetch():
                if worker.run is None:
                    return []  # it was cancelled meanwhile
                self._check_fetched(worker.run, message.file)
                return self._downloads.asked(worker.identity, message)
            case Piece():
                return self._uploads.came(worker.identity, message)

    def done(self, result: Result) -> list[Step]:
        """Go on after something was written or read. What failed is the fault of its worker, if it still is one."""
        match result:
            case PieceWritten():
                return self._uploads.taken(result)
            case Read():
                return self._downloads.read(result)
            case Filed():
                worker = self._workers.of(result.announced.worker)
                if result.outcome == "failed" and worker is not None:
                    worker.fault = worker.fault or f"{result.announced.path} {result.why}"
                return self._uploads.filed(result)

    def check_stored(self, worker: WorkerState, report: Report) -> None:
        """Rejected unless what the report names was stored."""
        if worker.order.shares_files:
            return
        named = ("", "")
        if isinstance(report, EpisodeFinished) and report.checkpoint is not None:
            named = (report.checkpoint.file, report.checkpoint.sha256)
        elif isinstance(report, Evaluated):
            named = (report.record.policy_file, report.record.policy_sha256)
        if any(named) and not self._uploads.has(worker.identity, *named):
            raise Rejected(f"names {named[0]}, of which other bytes or none were stored")
        self._uploads.keep_only(worker.identity, frozenset(named[:1]))

    def cancelled(self, worker: WorkerState) -> list[Step]:
        """The worker's run is given up, and what it has under way."""
        self._downloads.forget(worker.identity)
        return self._uploads.withdraw(worker.identity)

    def lost(self, worker: WorkerState) -> list[Step]:
        """The worker is gone."""
        self._downloads.forget(worker.identity)
        return self._uploads.forget(worker.identity)

    def _announced(self, worker: WorkerState, upload: Upload) -> AnnouncedFile | None:
        """None for a file of a run that was given up."""
        spec = None if upload.run is None else self._spec(worker, upload.run)
        position = None
        match upload.file:
            case "worker log" if spec is None:
                path, position = worker.order.log_file, upload.position
            case "run log" if spec is not None:
                path, position = spec.log_file, upload.position
            case "checkpoint" if spec is not None and 1 <= upload.milestone <= spec.episodes:
                path = file_of(spec.ref, upload.milestone, worker.order.writer)
            case "policy" if spec is not None:
                path = spec.policy_file
            case _:
                of = "nothing" if upload.run is None else upload.run.name
                raise Rejected(f"announces a {upload.file} of {of}, milestone {upload.milestone}")
        if position is None and spec != worker.run:
            return None
        if position is not None and not 1 <= upload.size_bytes <= LOG_BYTES:
            what = f"{upload.size_bytes} bytes of a {upload.file}"
            raise Rejected(f"announces {what}, which comes by 1 to {LOG_BYTES} at a time")
        return AnnouncedFile(
            worker=worker.identity, number=upload.number, path=path, size_bytes=upload.size_bytes,
            sha256=upload.sha256, checkpoint=upload.file == "checkpoint", position=position,
        )  # fmt: skip

    def _spec(self, worker: WorkerState, ref: RunRef) -> RunSpec:
        run = self._history.runs.get(ref.name)
        if run is None or not run.started or run.ref != ref or ref.lane != worker.lane:
            raise Rejected(f"announces a file of {ref.name}, which it was not assigned")
        return run.spec

    def _check_fetched(self, spec: RunSpec, file: str) -> None:
        """Rejected unless it is a checkpoint that was offered, or lies in a folder of the run's copies of code."""
        folders = [code.folder for code in spec.reward_code if code.folder]
        if spec.trainer is not None and not is_command(spec.trainer.reference):
            folders.append(spec.trainer.folder)
        offered = [one.file for one in assignment(self._history.runs[spec.ref.name]).checkpoints]
        if file not in offered and not any(f"{file}/".startswith(f"{folder}/") for folder in folders):
            raise Rejected(f"asks for {file}, which is not of its run")
