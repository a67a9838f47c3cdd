"""A worker's files: in the experiment directory that it shares with the coordinator, or over the link.

Where nothing is shared, a worker has a folder of its own that goes with it. What has to outlive it is announced by an
Upload; the coordinator asks for the pieces, one file at a time, and says when it is stored. What the worker needs, it
fetches piece by piece. Its console output follows by and by: a little whenever it has something else to say.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from esper_ab.contracts import messages
from esper_ab.contracts.below import write_below
from esper_ab.contracts.checkpoint_files import file_of
from esper_ab.contracts.private_folder import private_folder
from esper_ab.contracts.records import Checkpoint, RunRef
from esper_ab.contracts.regular_file import open_to_read, read_regular
from esper_ab.contracts.trainer import is_command
from workers.process.link import Link
from workers.storage import checkpoint, durable
from workers.storage.durable import Damaged

_AGAIN_AFTER_S = 30.0  # without an answer: the connection may have been lost, and what was on its way
_LOG_PAUSE_S = 1.0
_LAST_WORDS_S = 5.0
_MOST_LISTED, _MOST_BYTES = 1 << 20, 64 << 20  # bytes of the list of a folder of copies, and of one copy

Wait = Callable[[], None]  # waits for messages for a moment, says so, and raises when the work is to be given up


@contextmanager
def in_own_folder(order: messages.WorkerOrder) -> Iterator[messages.WorkerOrder]:
    """Yield the order with an empty folder in the place of an experiment directory that this worker does not see."""
    if order.shares_files:
        yield order
        return
    folder = private_folder(for_sockets=False)
    try:
        yield msgspec.structs.replace(order, experiment_dir=str(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def files_of(link: Link, order: messages.WorkerOrder) -> Files:
    """Return the files of a worker with this order, after `in_own_folder`."""
    return SharedFiles(order) if order.shares_files else LinkedFiles(link, order)


class Files(Protocol):
    """What the loop does with files of a run. OSError when there is no room for one: it may be tried again."""

    def store_checkpoint(self, run: RunRef, milestone: int, data: bytes, wait: Wait) -> Checkpoint:
        """Keep it so that a record may name it."""

    def store_policy(self, spec: messages.RunSpec, wait: Wait) -> None:
        """Keep the policy that the run has saved below the worker's folder, so that a record may name it."""

    def read(self, offered: Checkpoint, wait: Wait) -> bytes:
        """Return the bytes of `offered`; Damaged when they are missing or not those that were recorded."""

    def bring_code(self, spec: messages.RunSpec, wait: Wait) -> None:
        """Put the copies of users' code that the run needs below the worker's folder; OSError when it cannot."""

    def logs_to(self, spec: messages.RunSpec) -> None:
        """From now on console output goes to the log of this run, below the worker's folder."""

    def finish(self, error: BaseException | None = None) -> None:
        """Nothing is written any more. `error`: with which the worker ends, which will write it when it is gone."""


class SharedFiles:
    """In the experiment directory, which all workers see."""

    def __init__(self, order: messages.WorkerOrder) -> None:
        self._root, self._writer = Path(order.experiment_dir), order.writer

    def store_checkpoint(self, run: RunRef, milestone: int, data: bytes, wait: Wait) -> Checkpoint:
        return checkpoint.store(self._root, run, milestone, data, self._writer)

    def store_policy(self, spec: messages.RunSpec, wait: Wait) -> None:
        """Do nothing: the run has saved it in the experiment directory."""

    def read(self, offered: Checkpoint, wait: Wait) -> bytes:
        return durable.read(self._root / offered.file, offered.sha256, offered.size_bytes)

    def bring_code(self, spec: messages.RunSpec, wait: Wait) -> None:
        """Do nothing: the copies lie in the experiment directory."""

    def logs_to(self, spec: messages.RunSpec) -> None:
        """Do nothing: the run's log lies in the experiment directory."""

    def finish(self, error: BaseException | None = None) -> None:
        """Do nothing: whatever was written lies in the experiment directory."""


@dataclass(kw_only=True)
class _Outgoing:
    """The file that the coordinator was last told of."""

    announced: messages.Upload
    data: bytes
    heard_at: float  # monotonic, s: of it, or when it was announced
    stored: bool = False
    no_room: bool = False

    @property
    def open(self) -> bool:
        return not (self.stored or self.no_room)


@dataclass(kw_only=True)
class _Log:
    """Console output in the worker's folder, and how much of it the coordinator has."""

    path: Path
    run: RunRef | None
    position: int = 0
    block: bytes = b""  # announced, and not stored yet


class LinkedFiles:
    """Over the link; `order.experiment_dir` is the worker's own folder."""

    def __init__(self, link: Link, order: messages.WorkerOrder, again_after_s: float = _AGAIN_AFTER_S) -> None:
        self._link, self._root, self._writer = link, Path(order.experiment_dir), order.writer
        self._again_after_s = again_after_s
        self._numbers = 0
        self._outgoing: _Outgoing | None = None
        self._fetched: messages.Fetched | None = None
        self._brought: set[str] = set()  # folders of copies that are here whole
        self._logs = [_Log(path=self._root / order.log_file, run=None)]
        self._log_sent: _Log | None = None  # whose block is the outgoing file
        self._log_at = 0.0
        link.take_files(self._hear, self._pump)

    def store_checkpoint(self, run: RunRef, milestone: int, data: bytes, wait: Wait) -> Checkpoint:
        found = self._upload("checkpoint", data, wait, run=run, milestone=milestone)
        file = file_of(run, milestone, self._writer)
        return Checkpoint(milestone=milestone, file=file, sha256=found.sha256, size_bytes=len(data))

    def store_policy(self, spec: messages.RunSpec, wait: Wait) -> None:
        data = read_regular(self._root / spec.policy_file, messages.FILE_LIMIT_BYTES)
        self._upload("policy", data, wait, run=spec.ref)

    def read(self, offered: Checkpoint, wait: Wait) -> bytes:
        try:
            data = self._fetch(offered.file, offered.size_bytes, wait)
        except FileNotFoundError as error:
            raise Damaged(f"cannot be read: {error.strerror}") from None
        return durable.intact(data, offered.sha256, offered.size_bytes)

    def bring_code(self, spec: messages.RunSpec, wait: Wait) -> None:
        folders = [code.folder for code in spec.reward_code if code.folder]
        if spec.trainer is not None and not is_command(spec.trainer.reference):
            folders.append(spec.trainer.folder)
        for folder in dict.fromkeys(folders):
            if folder in self._brought:
                continue
            for name in self._copy(folder, _MOST_LISTED, wait).decode().split("\n"):
                write_below(self._root, f"{folder}/{name}", self._copy(f"{folder}/{name}", _MOST_BYTES, wait))
            self._brought.add(folder)

    def logs_to(self, spec: messages.RunSpec) -> None:
        """What there is of the logs before is still to be sent."""
        self._logs = [log for log in self._logs if log.run is None or _size(log.path) > log.position]
        if not any(log.run == spec.ref for log in self._logs):
            path = self._root / spec.log_file
            self._logs.append(_Log(path=path, run=spec.ref, position=_size(path)))

    def finish(self, error: BaseException | None = None) -> None:
        """Send what there is of console output, with the error, as long as somebody takes it."""
        if error is not None:
            traceback.print_exception(error)
        deadline = time.monotonic() + _LAST_WORDS_S
        while self._unsent() and time.monotonic() < deadline:
            self._log_at = 0.0
            self._pump()
            self._link.receive(0.05)

    # --- to the coordinator ---

    def _upload(
        self, file: str, data: bytes, wait: Wait, *, run: RunRef, milestone: int = 0
    ) -> messages.Upload:
        """Return when it is stored; OSError when there is no room. It takes the place of console output under way."""
        self._log_sent = None
        outgoing = self._announce(file, data, run=run, milestone=milestone)
        try:
            while not outgoing.stored:
                wait()
                if outgoing.no_room:
                    raise OSError(errno.ENOSPC, "the coordinator has no room", file)
                if time.monotonic() - outgoing.heard_at > self._again_after_s:
                    outgoing = self._announce(file, data, run=run, milestone=milestone)
        finally:
            self._outgoing = None
        return outgoing.announced

    def _announce(
        self, file: str, data: bytes, *, run: RunRef | None, milestone: int = 0, position: int = 0
    ) -> _Outgoing:
        self._numbers += 1
        announced = messages.Upload(
            number=self._numbers, file=file, run=run, milestone=milestone, position=position,  # type: ignore[arg-type]
            size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest(),
        )
        self._outgoing = _Outgoing(announced=announced, data=data, heard_at=time.monotonic())
        self._link.send(announced)
        return self._outgoing

    def _hear(self, message: messages.FileAnswer) -> None:
        if isinstance(message, messages.Fetched):
            self._fetched = message
            return
        outgoing = self._outgoing
        if outgoing is None or message.number != outgoing.announced.number:
            return  # of a file that another one has taken the place of
        outgoing.heard_at = time.monotonic()
        match message:
            case messages.Grant():
                data = outgoing.data[message.offset : message.offset + message.length]
                self._link.send(messages.Piece(number=message.number, offset=message.offset, data=data))
            case messages.Stored():
                outgoing.stored = True
            case messages.NoRoom():
                outgoing.no_room = True
        if self._log_sent is not None and outgoing.stored:
            self._log_sent.position += len(self._log_sent.block)
            self._log_sent.block, self._log_sent = b"", None

    # --- console output ---

    def _pump(self) -> None:
        """Announce what there is of it, unless something else is under way, and not too often."""
        now, outgoing = time.monotonic(), self._outgoing
        if now - self._log_at < _LOG_PAUSE_S:
            return
        if outgoing is not None and outgoing.open and now - outgoing.heard_at < self._again_after_s:
            return
        if outgoing is not None and outgoing.open and self._log_sent is None:
            return  # `_upload` announces it again
        self._log_at = now
        log = next((log for log in self._logs if log.block or _size(log.path) > log.position), None)
        if log is None:
            return
        if not log.block:
            with open_to_read(log.path) as file:
                file.seek(log.position)
                log.block = file.read(messages.LOG_BYTES)
        kind = "worker log" if log.run is None else "run log"
        self._log_sent = log
        self._announce(kind, log.block, run=log.run, position=log.position)

    def _unsent(self) -> bool:
        return any(log.block or _size(log.path) > log.position for log in self._logs)

    # --- from the coordinator ---

    def _copy(self, file: str, most_bytes: int, wait: Wait) -> bytes:
        data = self._fetch(file, most_bytes, wait)
        if len(data) > most_bytes:
            raise OSError(errno.EFBIG, f"is larger than {most_bytes >> 20} MiB, the most that is fetched", file)
        return data

    def _fetch(self, file: str, most_bytes: int, wait: Wait) -> bytes:
        """At most a byte more than `most_bytes`; FileNotFoundError with the coordinator's reason."""
        self._numbers += 1
        number, found = self._numbers, bytearray()
        while len(found) <= most_bytes:
            piece = self._piece(messages.Fetch(number=number, file=file, offset=len(found)), wait)
            if piece.lack:
                raise FileNotFoundError(errno.ENOENT, piece.lack, file)
            found += piece.data
            if not piece.data:
                break
        return bytes(found[: most_bytes + 1])

    def _piece(self, asked: messages.Fetch, wait: Wait) -> messages.Fetched:
        self._link.send(asked)
        asked_at = time.monotonic()
        while True:
            wait()
            piece, self._fetched = self._fetched, None
            if piece is not None and (piece.number, piece.offset) == (asked.number, asked.offset):
                return piece
            if time.monotonic() - asked_at > self._again_after_s:
                self._link.send(asked)
                asked_at = time.monotonic()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
