"""Workers that see nothing of the experiment directory: each has an empty folder, and files take the link."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from pathlib import Path

import msgspec

from esper_ab.contracts.messages import PIECE_BYTES, EpisodeFinished, Piece, Upload
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.launchers.local import LocalLauncher
from support import fake_worker
from workers.process.link import Link

FAKE = "support.fake_worker:main"
PIECES = 3  # of a large checkpoint


class Apart(LocalLauncher):
    """As the local launcher, with orders that name a folder which is not there."""

    shares_files = False

    def __init__(self, entry=FAKE, transport="ipc"):
        super().__init__(entry, transport)
        self.pids = {}  # by identity

    def start(self, order):
        worker = super().start(msgspec.structs.replace(order, experiment_dir="/nowhere"))
        self.pids[order.identity] = worker.pid
        return worker


class ThreadsApart(InlineLauncher):
    """The same with threads."""

    shares_files = False


def contents(experiment_dir: Path, *folders: str) -> dict[str, bytes]:
    """Files below `folders` of the directory."""
    return {
        str(path.relative_to(experiment_dir)): path.read_bytes()
        for folder in folders for path in (experiment_dir / folder).rglob("*") if path.is_file()
    }


def dies_in_an_upload(order):
    """Entry: the first worker of lane w00 kills itself between two pieces of its second checkpoint."""
    with _large_states():
        if order.identity == "w00/1":
            pieces = iter(range(10))
            _when_sent(Piece, lambda message: _die() if next(pieces) == PIECES + 1 else message)
        fake_worker.main(order)


def lies(order):
    """Entry: the first worker of lane w00 announces another sha256 than its second checkpoint has."""
    with _large_states():
        if order.identity == "w00/1":
            false = {"sha256": "0" * 64}
            _when_sent(Upload, lambda sent: msgspec.structs.replace(sent, **false) if sent.milestone == 2 else sent)
        fake_worker.main(order)


def names_what_it_has_not_stored(order):
    """Entry: the first worker of lane w00 reports a checkpoint as another than it has stored."""
    if order.identity == "w00/1":
        named = {"file": "checkpoints/a/0/1.2.pt", "sha256": "0" * 64, "milestone": 1, "size_bytes": 1}

        def alter(sent):
            if sent.checkpoint is None:
                return sent
            return msgspec.structs.replace(sent, checkpoint=msgspec.structs.replace(sent.checkpoint, **named))

        _when_sent(EpisodeFinished, alter)
    fake_worker.main(order)


def large(order):
    """Entry: a worker whose checkpoints are of several pieces."""
    with _large_states():
        fake_worker.main(order)


@contextmanager
def _large_states():
    short = fake_worker.state
    fake_worker.state = lambda spec, milestone: short(spec, milestone).ljust(PIECES * PIECE_BYTES, b"\0")
    try:
        yield
    finally:
        fake_worker.state = short


def _when_sent(kind, alter):
    send = Link.send
    Link.send = lambda link, message: send(link, alter(message) if isinstance(message, kind) else message)


def _die():
    os.kill(os.getpid(), signal.SIGKILL)
