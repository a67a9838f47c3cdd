"""Files that are replaced whole, over a file system that fails as NFS does, and then loses power.

The layer lies under `os`. A write may be short or fail after some bytes; a sync, a close (which is when NFS writes) and
a rename may fail; a rename may be done although it is said to have failed, as when only the answer was lost, and half
of it may be done when power goes: the old name is gone and the new one not there. A handle may be stale at any call.
Laws: what was reported as written is there, power cut or not; what was reported as failed leaves the old bytes or the
new ones, whole; a later try succeeds and leaves nothing else; a run is taken up from whole bytes that were recorded.
"""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.checkpoint_files import GENERATIONS
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.records import RunRef
from workers.storage import durable

FAILS = (errno.EIO, errno.ESTALE, errno.EDQUOT, errno.ENOSPC)
PATCHED = ("write", "fsync", "close", "replace")
RUN = RunRef(name="a/0", group_id="a", replicate=0, reward_mode="shaped", controller="ppo", device="cpu:0")
SIZES = st.integers(0, 40)


FAULTS = st.none() | st.tuples(
    st.sampled_from(["write", "fsync", "close", "replace before", "replace after"]),
    st.integers(1, 3),
    st.sampled_from(FAILS),
)


class FaultyFiles:
    """In place of four calls of `os`: the n-th of a kind fails, and writes are short.

    `fault`: the kind, n, and the number of the error; None: none.
    """

    def __init__(self, fault, short):
        self._kind, self._n, self._number = fault or ("", 0, 0)
        self._short = short
        self._real = {name: getattr(os, name) for name in PATCHED}

    def _fails(self, kind):
        self._n -= kind == self._kind
        if kind == self._kind and self._n == 0:
            raise OSError(self._number, os.strerror(self._number))

    def write(self, descriptor, data):
        count = self._real["write"](descriptor, bytes(data[: self._short]))
        self._fails("write")
        return count

    def fsync(self, descriptor):
        self._fails("fsync")
        self._real["fsync"](descriptor)

    def close(self, descriptor):
        self._real["close"](descriptor)  # the descriptor is gone even so
        self._fails("close")

    def replace(self, source, target):
        self._fails("replace before")
        self._real["replace"](source, target)
        self._fails("replace after")


FAULTY = st.builds(FaultyFiles, FAULTS, st.integers(7, 99))


def tried(faulty, write):
    """Whether it says that it has written."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PATCHED:
            patch.setattr(os, name, getattr(faulty, name))
        try:
            write()
        except OSError:
            return False
        return True


@given(st.data())
def test_a_file_is_the_old_one_or_the_new_one_whatever_fails(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("faulty")
    there = b""
    write_below(root, "folder/file", there, synced=True)
    for number in range(1, data.draw(st.integers(1, 4)) + 1):
        new = bytes([number]) * data.draw(SIZES)
        if tried(data.draw(FAULTY), lambda new=new: write_below(root, "folder/file", new, synced=True)):
            there = new
        found = (root / "folder" / "file").read_bytes()
        assert found in (there, new)
        there = found
    write_below(root, "folder/file", b"last", synced=True)
    assert {path.name: path.read_bytes() for path in (root / "folder").iterdir()} == {"file": b"last"}


@given(st.data())
def test_a_run_is_taken_up_from_what_was_recorded(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("faulty")
    recorded = []
    for milestone in range(data.draw(st.integers(1, 4))):
        state = bytes([milestone]) * (1 + data.draw(SIZES))
        said = []

        def store(at=milestone, state=state, said=said):
            said.append(durable.store(root, RUN, at, state))

        if not tried(data.draw(FAULTY), store):
            store()  # the same worker, when there is room, or the next one: no milestone is left out
        recorded.append((said[-1], state))  # the record is sent now
    torn = data.draw(st.booleans(), label="power goes in the middle of a rename")
    if torn and recorded:  # of the newest, which was written again by a worker that had not been heard
        (root / recorded[-1][0].file).unlink()
    offered = tuple(one for one, _ in reversed(recorded))[:GENERATIONS]
    taken = []
    milestone, damaged = durable.take_up(root, RUN, offered, taken.append)
    assert len(damaged) == (torn and bool(recorded))
    if taken:
        assert taken == [dict((one.milestone, state) for one, state in recorded)[milestone]]
    else:
        assert len(recorded) <= torn, "the one before is kept in case the newest gets damaged"
