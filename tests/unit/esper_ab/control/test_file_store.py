"""What is on the disk of files that came over the link: whole ones, and nothing else."""

from __future__ import annotations

import errno
import hashlib
import os
import select
from contextlib import closing

import pytest

from esper_ab.contracts.messages import PIECE_BYTES, Fetch
from esper_ab.control.file_store import FileStore
from esper_ab.control.rules.transfers import AnnouncedFile, DropFile, Filed, Read, ReadPiece, TakePiece

PATIENCE_S = 60.0
DATA = os.urandom(PIECE_BYTES) * 2 + b"the end"


def announced(path="policies/a/0.pt", data=DATA, **changed):
    given = {"worker": "w00/1", "number": 1, "sha256": hashlib.sha256(data).hexdigest()} | changed
    return AnnouncedFile(path=path, size_bytes=len(data), **given)


@pytest.fixture
def store(tmp_path):
    with closing(FileStore(tmp_path)) as made:
        yield made


def results(store, kind, count=1):
    found = []
    while len(found) < count:
        assert select.select([store.descriptor], [], [], PATIENCE_S)[0]
        found += [one for one in store.results() if isinstance(one, kind)]
    return found


def send(store, one, data=DATA):
    for at in range(0, max(1, len(data)), PIECE_BYTES):
        store.do(TakePiece(one, data[at : at + PIECE_BYTES]))
    (filed,) = results(store, Filed)
    return filed.outcome, filed.why


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_file_is_there_when_it_is_whole(store, tmp_path):
    assert send(store, announced()) == ("stored", "")
    assert send(store, announced("policies/a/1.pt", b"", number=2), b"") == ("stored", "")
    assert contents(tmp_path) == {"policies/a/0.pt": DATA, "policies/a/1.pt": b""}


def test_other_bytes_than_were_announced_leave_the_one_before(store, tmp_path):
    send(store, announced())
    wrong = announced(number=2, sha256="0" * 64)
    assert send(store, wrong) == ("failed", "came with other bytes than were announced")
    assert contents(tmp_path) == {"policies/a/0.pt": DATA}


def test_of_a_file_that_is_dropped_nothing_is_left_and_nothing_comes_later(store, tmp_path):
    one, second = announced(), announced(number=2)
    store.do(TakePiece(one, DATA[:PIECE_BYTES]))
    store.do(DropFile(one))
    store.do(TakePiece(one, DATA[PIECE_BYTES:]))
    assert send(store, second) == ("stored", "")
    assert contents(tmp_path) == {"policies/a/0.pt": DATA}


def test_what_is_not_complete_at_the_end_is_not_there(tmp_path):
    with closing(FileStore(tmp_path)) as store:
        store.do(TakePiece(announced(), DATA[:PIECE_BYTES]))
    assert contents(tmp_path) == {}


def test_without_room_nothing_is_kept_and_it_may_come_again(store, tmp_path, monkeypatch):
    real = os.fsync

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert send(store, announced("0.pt")) == ("no room", "")
    assert contents(tmp_path) == {}
    monkeypatch.setattr(os, "fsync", real)
    assert send(store, announced("0.pt", number=2)) == ("stored", "")


def test_nothing_is_written_behind_a_link(store, tmp_path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (tmp_path / "policies").symlink_to(elsewhere)
    outcome, why = send(store, announced())
    assert (outcome, why) == ("failed", "cannot be stored: is a symbolic link")
    assert contents(elsewhere) == {}


def test_two_generations_of_checkpoints_are_kept(store, tmp_path):
    for milestone in range(1, 6):
        path = f"checkpoints/a/0/{milestone}.2.pt"
        assert send(store, announced(path, number=milestone, checkpoint=True)) == ("stored", "")
    assert sorted(contents(tmp_path)) == ["checkpoints/a/0/4.2.pt", "checkpoints/a/0/5.2.pt"]


def test_a_log_grows_and_what_was_sent_twice_is_there_once(store, tmp_path):
    for number, position, text in ((1, 0, b"one\n"), (2, 0, b"one\n"), (3, 4, b"two\n")):
        assert send(store, announced("logs/w00.log", text, number=number, position=position), text) == ("stored", "")
    again = announced("logs/w00.log", b"three\n", worker="w00/2", position=0)
    assert send(store, again, b"three\n") == ("stored", "")
    assert contents(tmp_path) == {"logs/w00.log": b"one\ntwo\nthree\n"}


def test_files_and_lists_of_folders_are_read_by_pieces(store, tmp_path):
    copies = tmp_path / "rewards" / "abc"
    (copies / "package").mkdir(parents=True)
    (copies / "mine.py").write_bytes(DATA)
    (copies / "package" / "__init__.py").write_text("")

    def fetched(file):
        found = b""
        while True:
            store.do(ReadPiece("w00/1", Fetch(number=1, file=file, offset=len(found))))
            (read,) = results(store, Read)
            found += read.piece.data
            if not read.piece.data:
                return found, read.piece.lack

    assert fetched("rewards/abc") == (b"mine.py\npackage/__init__.py", "")
    assert fetched("rewards/abc/mine.py") == (DATA, "")
    assert fetched("rewards/abc/gone.py") == (b"", "No such file or directory")
