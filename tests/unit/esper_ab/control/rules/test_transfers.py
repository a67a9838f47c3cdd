"""Pieces of files under any order of events: a bound on what is under way, every byte once, and nobody is forgotten."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esper_ab.contracts.messages import PIECE_BYTES, Fetch, Fetched, Grant, NoRoom, Piece, Stored
from esper_ab.control.rules.transfers import (
    UNDER_WAY_BYTES,
    AnnouncedFile,
    Answer,
    Downloads,
    DropFile,
    Filed,
    PieceWritten,
    Read,
    ReadPiece,
    TakePiece,
    Uploads,
)
from esper_ab.control.rules.validation import Rejected

WORKERS = tuple(f"w{number:02d}/1" for number in range(24))
SIZES = (0, 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES - 7, 20 * PIECE_BYTES)


def announced(worker="w00/1", number=1, size_bytes=3 * PIECE_BYTES, sha256="0" * 64):
    return AnnouncedFile(worker=worker, number=number, path=f"policies/{worker}", size_bytes=size_bytes, sha256=sha256)


class World:
    """Workers that answer grants, a store that writes pieces, and a bound that holds after every step."""

    def __init__(self):
        self.uploads = Uploads()
        self.grants = {}  # worker -> grants that it has not answered
        self.store = []  # what is to be written, in order
        self.files = {}  # (worker, number) -> bytes written
        self.asked = {}  # (worker, number) -> bytes asked for
        self.stored = set()

    def perform(self, steps):
        for step in steps:
            match step:
                case Answer(worker, Grant() as grant):
                    key = (worker, grant.number)
                    assert grant.offset == self.asked.get(key, 0), "every byte is asked for once, in order"
                    assert 0 < grant.length <= PIECE_BYTES
                    self.asked[key] = grant.offset + grant.length
                    self.grants.setdefault(worker, []).append(grant)
                case Answer(worker, Stored() as said):
                    self.stored.add((worker, said.number))
                case TakePiece() | DropFile():
                    self.store.append(step)
        held = Counter({worker: sum(grant.length for grant in grants) for worker, grants in self.grants.items()})
        for one in self.store:
            if isinstance(one, TakePiece):
                held[one.announced.worker] += len(one.data)
        assert sum(max(0, size_bytes - PIECE_BYTES) for size_bytes in held.values()) <= UNDER_WAY_BYTES

    def announce(self, one):
        self.grants.pop(one.worker, None)  # a worker answers for its present file only
        self.perform(self.uploads.announce(one))

    def announce_all(self, sizes, number=1):
        """One file of each worker."""
        for worker, size_bytes in sizes.items():
            self.announce(announced(worker, number, size_bytes))

    def answer(self, worker):
        grants = self.grants.get(worker)
        if grants:
            grant = grants.pop(0)
            data = bytes(grant.length)
            self.perform(self.uploads.came(worker, Piece(number=grant.number, offset=grant.offset, data=data)))

    def write(self):
        if not self.store:
            return
        step = self.store[0]
        key = (step.announced.worker, step.announced.number)
        if isinstance(step, DropFile):
            del self.store[0]
            self.files.pop(key, None)
            return
        self.files[key] = self.files.get(key, 0) + len(step.data)
        if self.files[key] == step.announced.size_bytes:
            self.perform(self.uploads.filed(Filed(announced=step.announced, outcome="stored")))
        del self.store[0]
        self.perform(self.uploads.taken(PieceWritten(worker=key[0], number=key[1], length=len(step.data))))

    def settle(self, workers=WORKERS):
        """Until there is nothing left to do for a store and these workers; the others say nothing."""
        for _ in range(10_000):
            if not self.store and not any(self.grants.get(worker) for worker in workers):
                return
            for worker in workers:
                self.answer(worker)
            self.write()
        raise AssertionError("it does not come to rest")


def granted_to_all(world):
    """Bytes that are asked for when every worker announces a large file."""
    world.announce_all(dict.fromkeys(WORKERS, 20 * PIECE_BYTES), number=1000)
    return sum(grant.length for grants in world.grants.values() for grant in grants)


EVENTS = st.lists(
    st.tuples(st.sampled_from(("announce", "announce", "answer", "answer", "write", "write", "withdraw", "forget")),
              st.sampled_from(WORKERS), st.sampled_from(SIZES)), max_size=120,
)  # fmt: skip


@settings(deadline=None)
@given(EVENTS)
def test_whatever_happens_what_is_under_way_is_bounded_and_every_file_left_is_stored(events):
    world, numbers, present = World(), dict.fromkeys(WORKERS, 0), {}
    for event, worker, size_bytes in events:
        match event:
            case "announce":
                numbers[worker] += 1
                present[worker] = numbers[worker]
                world.announce(announced(worker, numbers[worker], size_bytes))
            case "answer":
                world.answer(worker)
            case "write":
                world.write()
            case "withdraw":
                present.pop(worker, None)
                world.grants.pop(worker, None)
                world.perform(world.uploads.withdraw(worker))
            case "forget":
                present.pop(worker, None)
                world.grants.pop(worker, None)
                world.perform(world.uploads.forget(worker))
    world.settle()
    assert world.stored >= set(present.items())
    assert granted_to_all(world) == granted_to_all(World()), "nothing is taken of what all share"


def test_a_large_file_does_not_hold_up_a_small_one():
    world = World()
    world.announce(announced(WORKERS[0], size_bytes=400 * PIECE_BYTES))
    for worker in WORKERS[1:]:
        world.announce(announced(worker, size_bytes=PIECE_BYTES))
    for _ in range(40):
        for worker in WORKERS:
            world.answer(worker)
        world.write()
    assert {worker for worker, _ in world.stored} >= set(WORKERS[1:])
    assert (WORKERS[0], 1) not in world.stored


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(WORKERS), st.sampled_from(SIZES)), st.sets(st.sampled_from(WORKERS)))
def test_workers_that_do_not_send_what_they_announced_hold_up_nobody_else(sizes, silent):
    world = World()
    world.announce_all({worker: size_bytes for worker, size_bytes in sizes.items() if worker in silent})
    world.announce_all({worker: size_bytes for worker, size_bytes in sizes.items() if worker not in silent})
    world.settle([worker for worker in WORKERS if worker not in silent])
    assert world.stored >= {(worker, 1) for worker in sizes if worker not in silent}


def test_a_worker_alone_has_several_pieces_under_way():
    world = World()
    world.announce(announced(size_bytes=20 * PIECE_BYTES))
    assert len(world.grants["w00/1"]) == 4


def test_who_announces_again_and_again_has_no_second_share():
    world = World()
    world.announce_all(dict.fromkeys(WORKERS, 20 * PIECE_BYTES))
    for number in range(2, 40):
        world.answer(WORKERS[0])  # and nothing is written
        world.announce(announced(WORKERS[0], number=number, size_bytes=20 * PIECE_BYTES))
    world.settle()
    assert world.stored >= {(WORKERS[0], 39), *((worker, 1) for worker in WORKERS[1:])}


@pytest.mark.parametrize("piece", [
    Piece(number=1, offset=PIECE_BYTES, data=bytes(PIECE_BYTES)),
    Piece(number=1, offset=0, data=b"short"),
    Piece(number=2, offset=0, data=bytes(PIECE_BYTES)),
])
def test_what_nobody_asked_for_is_refused(piece):
    uploads = Uploads()
    uploads.announce(announced())
    with pytest.raises(Rejected):
        uploads.came("w00/1", piece)


def test_a_piece_beyond_what_was_asked_for_is_refused():
    uploads = Uploads()
    steps = uploads.announce(announced(size_bytes=40 * PIECE_BYTES))
    asked = [step.message for step in steps]
    assert 1 < len(asked) < 40
    for grant in asked:
        uploads.came("w00/1", Piece(number=1, offset=grant.offset, data=bytes(grant.length)))
    with pytest.raises(Rejected, match="which nobody asked for"):
        uploads.came("w00/1", Piece(number=1, offset=len(asked) * PIECE_BYTES, data=bytes(PIECE_BYTES)))


def test_pieces_of_a_file_that_was_announced_again_are_void():
    uploads = Uploads()
    uploads.announce(announced(number=1))
    (dropped, *_) = uploads.announce(announced(number=2))
    assert dropped == DropFile(announced(number=1))
    assert uploads.came("w00/1", Piece(number=1, offset=0, data=bytes(PIECE_BYTES))) == []
    with pytest.raises(Rejected, match="announces a file as number 2 after 2"):
        uploads.announce(announced(number=2))


def test_a_full_disk_is_told_and_the_file_is_not_there():
    uploads, one = Uploads(), announced(size_bytes=0)
    uploads.announce(one)
    assert uploads.filed(Filed(announced=one, outcome="no room")) == [Answer("w00/1", NoRoom(number=1))]
    assert not uploads.has("w00/1", one.path, one.sha256)


def test_a_file_counts_as_stored_for_its_worker_and_its_bytes():
    uploads, one = Uploads(), announced(size_bytes=0)
    uploads.announce(one)
    assert uploads.filed(Filed(announced=one, outcome="stored")) == [Answer("w00/1", Stored(number=1))]
    assert uploads.has("w00/1", one.path, one.sha256)
    assert not uploads.has("w00/2", one.path, one.sha256)
    assert not uploads.has("w00/1", one.path, "1" * 64)
    uploads.forget("w00/1")
    assert not uploads.has("w00/1", one.path, one.sha256)


def test_what_a_withdrawn_worker_has_had_stored_since_counts_for_nobody():
    uploads, one = Uploads(), announced(size_bytes=0)
    uploads.announce(one)
    uploads.forget("w00/1")
    assert uploads.filed(Filed(announced=one, outcome="stored")) == []
    assert not uploads.has("w00/1", one.path, one.sha256)


class Reader:
    """Reads what downloads have read, one piece after another, and knows who waits for an answer."""

    def __init__(self):
        self.downloads, self.reading, self.waits = Downloads(), [], {}

    def perform(self, steps):
        for step in steps:
            if isinstance(step, ReadPiece):
                self.reading.append(step)
            else:
                assert self.waits.pop(step.worker) == step.message.offset, "an answer is to the last question"
        readers = [due.worker for due in self.reading]
        assert len(readers) == len(set(readers)), "a piece for each worker, at most"
        assert set(readers) >= set(self.waits)

    def ask(self, worker, offset):
        self.waits[worker] = offset
        self.perform(self.downloads.asked(worker, Fetch(number=1, file="checkpoints/a/0/1.pt", offset=offset)))

    def forget(self, worker, offset):
        self.waits.pop(worker, None)
        self.downloads.forget(worker)

    def read(self, worker, offset):
        if self.reading:
            due = self.reading.pop(0)
            piece = Fetched(number=due.asked.number, offset=due.asked.offset, data=b"x")
            self.perform(self.downloads.read(Read(worker=due.worker, piece=piece)))


@given(st.lists(
    st.tuples(st.sampled_from(("ask", "ask", "read", "forget")), st.sampled_from(WORKERS), st.integers(0, 3)),
    max_size=150,
))
def test_a_piece_is_read_for_each_worker_and_everybody_who_asks_gets_an_answer(events):
    """Whoever has been answered says nothing more unless it asks again: that holds up nobody."""
    reader = Reader()
    for event, worker, offset in events:
        getattr(reader, event)(worker, offset)
    for _ in range(2 * len(WORKERS)):
        reader.read(None, None)
    assert not reader.waits
    assert not reader.reading
