"""Files that are replaced atomically, on a file system that fails like NFS and then loses power.

`os` is patched. A write may be short or fail after some bytes; a sync, a close (when NFS writes) and a rename may fail;
a rename may succeed although it reports an error, as when only the reply was lost; a power cut may leave it half done,
with the old name gone and the new one missing. A handle may be stale at any call. Laws: bytes reported as written are
kept; a reported failure leaves the old or the new bytes, whole; a retry succeeds and leaves no other file; a run
resumes from recorded, whole bytes.
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
    """Faulty versions of four calls of `os`: the n-th of a kind fails, and writes are short.

    `fault` is the kind, n and the errno, or None.
    """

    def __init__(self, fault, write_limit):
        self._kind, self._n, self._number = fault or ("", 0, 0)
        self._short = write_limit
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
        self._real["close"](descriptor)  # the descriptor is released despite the error
        self._fails("close")

    def replace(self, source, target):
        self._fails("replace before")
        self._real["replace"](source, target)
        self._fails("replace after")


FAULTY = st.builds(FaultyFiles, FAULTS, st.integers(7, 99))


def write_with_faults(faulty_files, write):
    """Write with faults; return True if no error was raised."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PATCHED:
            patch.setattr(os, name, getattr(faulty_files, name))
        try:
            write()
        except OSError:
            return False
        return True


@given(st.data())
def test_a_failed_write_leaves_an_intact_old_or_new_file(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("faulty")
    expected = b""
    write_below(root, "folder/file", expected, synced=True)
    for number in range(1, data.draw(st.integers(1, 4)) + 1):
        new_content = bytes([number]) * data.draw(SIZES)
        if write_with_faults(
            data.draw(FAULTY),
            lambda new_content=new_content: write_below(root, "folder/file", new_content, synced=True),
        ):
            expected = new_content
        stored = (root / "folder" / "file").read_bytes()
        assert stored in (expected, new_content)
        expected = stored
    write_below(root, "folder/file", b"last", synced=True)
    assert {path.name: path.read_bytes() for path in (root / "folder").iterdir()} == {"file": b"last"}


@given(st.data())
def test_a_run_resumes_from_a_recorded_checkpoint_after_faults(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("faulty")
    recorded_states = []
    for milestone in range(data.draw(st.integers(1, 4))):
        state = bytes([milestone]) * (1 + data.draw(SIZES))
        checkpoints = []

        def store(number=milestone, state=state, checkpoints=checkpoints):
            checkpoints.append(durable.store(root, RUN, number, state))

        if not write_with_faults(data.draw(FAULTY), store):
            store()  # a retry by the same worker or by the next one: no milestone is skipped
        recorded_states.append((checkpoints[-1], state))  # the record is sent now
    has_torn_rename = data.draw(st.booleans(), label="power goes in the middle of a rename")
    if has_torn_rename and recorded_states:  # the newest file was rewritten by a worker whose report was lost
        (root / recorded_states[-1][0].file).unlink()
    offered_checkpoints = tuple(checkpoint for checkpoint, _ in reversed(recorded_states))[:GENERATIONS]
    states = []
    milestone, damage_reports = durable.take_up(root, RUN, offered_checkpoints, states.append)
    assert len(damage_reports) == (has_torn_rename and bool(recorded_states))
    if states:
        assert states == [dict((checkpoint.milestone, state) for checkpoint, state in recorded_states)[milestone]]
    else:
        assert len(recorded_states) <= has_torn_rename, "the previous checkpoint is kept in case the newest is damaged"
