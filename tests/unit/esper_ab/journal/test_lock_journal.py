"""What else keeps a writer out, and what does not: locks on any part of the journal, links, and foreign systems."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.short_journal import EVENTS

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.process_start import process_started
from esper_ab.journal.file import JOURNAL_NAME, Journal, read
from esper_ab.journal.lock import LOCK_NAME, Holder, Lock, holder, ray_job

UNNAMED = Holder(pid=0, host="", started=0, since="")


def descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@contextmanager
def writes_to(path: Path, start: int, length: int) -> Iterator[None]:
    """Another program has a write lock on these bytes; 0: to the end of the file, wherever that will be."""
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0))
        yield


@pytest.mark.parametrize(("start", "length"), [(0, 0), (0, 1), (1, 1), (1, 0), (40, 5), (1 << 20, 1), (1 << 20, 0)])
def test_whoever_writes_to_any_part_of_the_journal_keeps_others_out(tmp_path, journal_bytes, start, length):
    """Also behind its present end, where the next line comes."""
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal_bytes)
    with writes_to(path, start, length):
        assert holder(tmp_path) == UNNAMED
        with pytest.raises(UsageError, match=r"in use by another process, whose \.lock was removed"):
            Lock(tmp_path)
    assert holder(tmp_path) is None
    Lock(tmp_path).close()


def test_the_holder_locks_the_whole_journal(tmp_path):
    """So that another program that asks for a part of it finds it taken."""
    journal = Journal(tmp_path)
    with (tmp_path / JOURNAL_NAME).open("r+b") as file:
        for start, length in ((0, 1), (1, 1), (1 << 20, 1), (1 << 20, 0)):
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
            found = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))
            assert found[:4] == (fcntl.F_WRLCK, os.SEEK_SET, 0, 0)
    journal.close()


def linked(path: Path, elsewhere: Path) -> None:
    elsewhere.write_bytes(path.read_bytes() if path.exists() else b"")
    path.unlink(missing_ok=True)
    path.symlink_to(elsewhere)


@pytest.mark.parametrize(("name", "remedy"), [
    (LOCK_NAME, "remove it; the lock must be a regular file"),
    (JOURNAL_NAME, "replace it with the journal itself; nothing is written through links"),
])  # fmt: skip
def test_nothing_is_written_behind_a_link(tmp_path, journal_bytes, name, remedy):
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    folder.mkdir()
    (folder / JOURNAL_NAME).write_bytes(journal_bytes)
    linked(folder / name, elsewhere)
    before, there = descriptors(), elsewhere.read_bytes()
    for take in (Lock, lambda path: Journal.take_up(path, list)):
        with pytest.raises(UsageError) as refused:
            take(folder)
        assert str(refused.value) == f"{folder / name} is a symbolic link: {remedy}"
    assert elsewhere.read_bytes() == there
    assert descriptors() == before
    assert holder(folder) is None, "nobody has it"


def test_a_folder_in_the_place_of_the_journal_is_told(tmp_path):
    (tmp_path / JOURNAL_NAME).mkdir()
    with pytest.raises(UsageError, match="replace it with the journal itself"):
        Lock(tmp_path)
    assert holder(tmp_path) is None


def test_no_descriptor_is_left_open(tmp_path, journal_bytes):
    """Not by a journal that was closed, nor by one that was refused, nor by asking."""
    used, free, damaged = tmp_path / "used", tmp_path / "free", tmp_path / "damaged"
    for folder in (used, free, damaged):
        folder.mkdir()
    (damaged / JOURNAL_NAME).write_bytes(b"x" + journal_bytes[1:])
    before = descriptors()
    journal = Journal(used)
    assert descriptors() == before + 3
    for take in (Lock, Journal, lambda path: Journal.take_up(path, list)):
        with pytest.raises(UsageError, match="in use by"):
            take(used)
    assert holder(used) is not None
    assert descriptors() == before + 3
    journal.close()
    assert holder(used) is None
    with pytest.raises(UsageError, match="choose another name"):
        Journal(used)
    with pytest.raises(JournalError, match="line 1"):
        Journal.take_up(damaged, list)
    for _ in range(2):
        Lock(free).close()
    assert descriptors() == before


def test_closing_again_changes_nothing(tmp_path):
    lock = Lock(tmp_path)
    lock.close()
    other = Lock(tmp_path)
    lock.close()
    assert holder(tmp_path).pid == os.getpid()
    other.close()


def test_the_line_of_a_holder_says_who_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps({"metadata": {"job_submission_id": "raysubmit_7"}}))
    (tmp_path / LOCK_NAME).write_bytes(b"x" * 1000)  # an older and longer line
    lock = Lock(tmp_path)
    found = holder(tmp_path)
    lock.close()
    assert (found.pid, found.host, found.started) == (os.getpid(), socket.gethostname(), process_started(os.getpid()))
    assert (found.slurm_job, found.ray_job) == ("4711", "raysubmit_7")
    assert str(found) == f"process {os.getpid()} on {socket.gethostname()} since {found.since}"
    assert str(UNNAMED) == "another process"
    assert len((tmp_path / LOCK_NAME).read_bytes().splitlines()) == 1


@pytest.mark.parametrize(("told", "job"), [
    ('{"metadata": {"job_submission_id": "raysubmit_7"}}', "raysubmit_7"), ('{"metadata": {}}', ""), ("{}", ""),
    ("", ""), ("no json", ""), ('{"metadata": 3}', ""), ("[]", ""), ("\udcff", ""),
])  # fmt: skip
def test_what_ray_tells_of_a_job_is_its_number_or_nothing(told, job):
    assert ray_job(told) == job


@pytest.mark.parametrize("line", [
    b"", b"\n", b"no holder 00000000\n", b'{"pid":1} 00000000\n', b"\xff\xfe", b'{"pid":1,"host":"a"} 3f1b1e6a',
    *(b"%b %08x\n" % (own, zlib.crc32(own)) for own in (b"{}", b"\xff", b'{"pid":"1"}', b"")),
])  # fmt: skip
def test_a_line_that_names_nobody_names_nobody(tmp_path, line):
    """Its holder has not written it yet, or something has damaged it."""
    lock = Lock(tmp_path)
    (tmp_path / LOCK_NAME).write_bytes(line)
    assert holder(tmp_path) is None, "without a journal nobody is seen behind a lock that names nobody"
    with pytest.raises(UsageError, match=f"{tmp_path} is in use by another process; wait for it"):
        Lock(tmp_path)
    lock.close()


def test_a_system_without_such_locks_has_the_other_one(tmp_path, monkeypatch):
    monkeypatch.delattr(fcntl, "F_OFD_SETLK")
    monkeypatch.delattr(fcntl, "F_OFD_GETLK")
    journal = Journal(tmp_path)
    assert holder(tmp_path).pid == os.getpid()
    with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"):
        Lock(tmp_path)
    journal.append(EVENTS[0])
    journal.close()
    assert holder(tmp_path) is None
    assert list(read(tmp_path / JOURNAL_NAME)) == EVENTS[:1]
