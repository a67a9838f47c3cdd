"""Which piece of which file travels next between workers and coordinator, and when a file is complete.

Of an upload, bytes are under way that were asked for and are not written. One piece of each worker may always be, so
that nobody waits for others, which may never send what they were asked for; beyond it, all workers together may have a
fixed number of bytes under way, for which they take turns. To each worker one piece is under way, which its next
question confirms. Files are known by their worker and their number; what a worker that was withdrawn still sends is a
stranger's.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Literal

import msgspec

from esper_ab.contracts.messages import PIECE_BYTES, Fetch, Fetched, FileAnswer, Grant, NoRoom, Piece, Stored
from esper_ab.control.rules.validation import Rejected

UNDER_WAY_BYTES = 4 << 20  # of all uploads together, beyond one piece of each worker
_AHEAD_BYTES = 4 * PIECE_BYTES  # of one file, asked for before those before them are written


class AnnouncedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file on its way to the coordinator."""

    worker: str  # identity
    number: int
    path: str  # below the experiment directory; made by the coordinator
    size_bytes: int
    sha256: str
    checkpoint: bool = False  # older ones go when it is whole
    position: int | None = None  # of a log, to which it is appended: where it begins in the worker's


class PieceWritten(msgspec.Struct, frozen=True, kw_only=True):
    """A piece was written, or thrown away with its file."""

    worker: str
    number: int
    length: int


class Filed(msgspec.Struct, frozen=True, kw_only=True):
    """A file is complete and on disk, or nothing of it was kept."""

    announced: AnnouncedFile
    outcome: Literal["stored", "no room", "failed"]
    why: str = ""  # it failed, in words after the file's name


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a file that a worker fetches."""

    worker: str
    piece: Fetched


Result = PieceWritten | Filed | Read


class TakePiece(msgspec.Struct, frozen=True):
    """Write the next bytes of a file; `PieceWritten` tells when, and after the last ones `Filed`."""

    announced: AnnouncedFile
    data: bytes


class DropFile(msgspec.Struct, frozen=True):
    """Keep nothing of a file that is not complete; none of its pieces comes any more."""

    announced: AnnouncedFile


class ReadPiece(msgspec.Struct, frozen=True):
    """Read a piece, which `Read` has."""

    worker: str
    asked: Fetch


class Answer(msgspec.Struct, frozen=True):
    """Send a worker a message about a file."""

    worker: str
    message: FileAnswer


Step = TakePiece | DropFile | ReadPiece | Answer


@dataclass(kw_only=True)
class _Upload:
    announced: AnnouncedFile
    asked: int = 0  # bytes: asked for, ...
    came: int = 0  # ... arrived ...
    written: int = 0

    @property
    def left(self) -> int:
        return self.announced.size_bytes - self.asked


class Uploads:
    """Files on their way to the coordinator, one of each worker at most."""

    def __init__(self) -> None:
        self._of: dict[str, _Upload] = {}
        self._held: Counter[str] = Counter()  # worker -> its bytes under way, those of files that are void among them
        self._shared_bytes = 0  # of these, beyond one piece of each worker
        self._last: dict[str, int] = {}  # worker -> number of its last upload
        self._turns: OrderedDict[str, None] = OrderedDict()  # workers whose next piece may be asked for, in turn
        self._stored: dict[str, dict[str, AnnouncedFile]] = {}  # worker -> path -> what was stored there

    def announce(self, announced: AnnouncedFile) -> list[Step]:
        """Begin a file; it takes the place of the worker's one before. Rejected for a number that was used before."""
        worker = announced.worker
        if announced.number <= self._last.get(worker, 0):
            raise Rejected(f"announces a file as number {announced.number} after {self._last[worker]}")
        dropped = self._void(worker)
        self._last[worker] = announced.number
        self._of[worker] = _Upload(announced=announced)
        if not announced.size_bytes:
            return [*dropped, TakePiece(announced, b"")]
        self._turns[worker] = None
        return [*dropped, *self._ask(worker)]

    def came(self, worker: str, piece: Piece) -> list[Step]:
        """Take a piece; none of a file that another took the place of. Rejected when it is not the one asked for."""
        upload = self._of.get(worker)
        if piece.number < self._last.get(worker, 0) or (upload is None and piece.number == self._last.get(worker, 0)):
            return []
        if upload is None or piece.number != upload.announced.number:
            raise Rejected(f"sends a piece of file {piece.number}, which it has not announced")
        due = min(PIECE_BYTES, upload.announced.size_bytes - upload.came)
        if upload.came >= upload.asked or piece.offset != upload.came or len(piece.data) != due:
            what = f"{len(piece.data)} bytes at {piece.offset} of {upload.announced.path}"
            raise Rejected(f"sends {what}, which nobody asked for")
        upload.came += due
        return [TakePiece(upload.announced, piece.data)]

    def taken(self, taken: PieceWritten) -> list[Step]:
        """Go on after a piece was written."""
        self._hold(taken.worker, -taken.length)
        upload = self._of.get(taken.worker)
        if upload is not None and upload.announced.number == taken.number:
            upload.written += taken.length
            if upload.left:
                self._turns[taken.worker] = None  # who is there already keeps its turn
        return self._ask(taken.worker)

    def filed(self, filed: Filed) -> list[Step]:
        """Tell the worker what became of its file, if it is still the one it waits for."""
        announced = filed.announced
        upload = self._of.get(announced.worker)
        if upload is None or upload.announced != announced:
            return []
        steps = self._void(announced.worker, dropped=False)
        if filed.outcome == "no room":
            return [*steps, Answer(announced.worker, NoRoom(number=announced.number))]
        if filed.outcome == "failed":
            return steps
        self._stored.setdefault(announced.worker, {})[announced.path] = announced
        return [*steps, Answer(announced.worker, Stored(number=announced.number))]

    def withdraw(self, worker: str) -> list[Step]:
        """Forget what the worker has under way; it begins anew, or is gone."""
        return self._void(worker)

    def forget(self, worker: str) -> list[Step]:
        """The worker is gone, and nothing that it sends counts any more."""
        self._stored.pop(worker, None)
        self._last.pop(worker, None)
        return self._void(worker)

    def has(self, worker: str, path: str, sha256: str) -> bool:
        """Whether this worker has had these bytes stored there."""
        stored = self._stored.get(worker, {}).get(path)
        return stored is not None and stored.sha256 == sha256

    def keep_only(self, worker: str, paths: frozenset[str]) -> None:
        """Forget what else the worker has had stored."""
        self._stored[worker] = {path: one for path, one in self._stored.get(worker, {}).items() if path in paths}

    def _ask(self, worker: str) -> list[Step]:
        """Go on after what is under way of `worker` has changed."""
        steps: list[Step] = []
        if worker in self._turns and not self._held[worker]:
            steps.append(self._grant(worker))
        while self._turns:
            first = next(iter(self._turns))
            piece = min(PIECE_BYTES, self._of[first].left)
            if self._shared_bytes + _shared(self._held[first] + piece) - _shared(self._held[first]) > UNDER_WAY_BYTES:
                break  # who is first stays first
            steps.append(self._grant(first))
        return steps

    def _grant(self, worker: str) -> Answer:
        """Ask for its next piece; it has its next turn after all others."""
        upload = self._of[worker]
        grant = Grant(number=upload.announced.number, offset=upload.asked, length=min(PIECE_BYTES, upload.left))
        upload.asked += grant.length
        self._hold(worker, grant.length)
        del self._turns[worker]
        if upload.left and upload.asked - upload.written < _AHEAD_BYTES:
            self._turns[worker] = None
        return Answer(worker, grant)

    def _hold(self, worker: str, more: int) -> None:
        self._shared_bytes -= _shared(self._held[worker])
        self._held[worker] += more
        self._shared_bytes += _shared(self._held[worker])
        if not self._held[worker]:
            del self._held[worker]

    def _void(self, worker: str, *, dropped: bool = True) -> list[Step]:
        """What was asked for and has not come is not under way any more; what has come is until it is written."""
        upload = self._of.pop(worker, None)
        if upload is None:
            return []
        self._turns.pop(worker, None)
        self._hold(worker, upload.came - upload.asked)
        return [*([DropFile(upload.announced)] if dropped else []), *self._ask(worker)]


def _shared(held_bytes: int) -> int:
    """What a worker takes of the bytes that all share when it has so many under way."""
    return max(0, held_bytes - PIECE_BYTES)


class Downloads:
    """Pieces on their way to workers: one for each at most, so that nobody waits for others."""

    def __init__(self) -> None:
        self._asked: dict[str, Fetch] = {}  # worker -> its last question, until it is answered
        self._reading: set[str] = set()  # workers: a piece is being read for them

    def asked(self, worker: str, fetch: Fetch) -> list[Step]:
        """Have a piece read: the question takes the place of the worker's one before."""
        self._asked[worker] = fetch
        return self._read(worker)

    def read(self, read: Read) -> list[Step]:
        """Send what was read, unless its worker has asked for something else since, or for nothing more."""
        self._reading.remove(read.worker)
        asked = self._asked.get(read.worker)
        if asked is None or (asked.number, asked.offset) != (read.piece.number, read.piece.offset):
            return self._read(read.worker)
        del self._asked[read.worker]
        return [Answer(read.worker, read.piece)]

    def forget(self, worker: str) -> None:
        """The worker asks for nothing more of what it asked for."""
        self._asked.pop(worker, None)

    def _read(self, worker: str) -> list[Step]:
        asked = self._asked.get(worker)
        if asked is None or worker in self._reading:
            return []
        self._reading.add(worker)
        return [ReadPiece(worker, asked)]
