"""Who writes to an experiment directory: one holder, who is named; nobody else gets in, and nobody is locked out.

What else keeps a writer out, and what does not: locks on any part of the journal, links, and foreign systems.
"""

import errno
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest
from support.files.file_size import failing
from support.journals.short_journal import EVENTS, complete, fixed_clock

from esper_ab.commands.tidy import repair
from esper_ab.contracts.errors import DiskFull, JournalError, UsageError
from esper_ab.contracts.process_start import process_started
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME, LOCK_NAME, Holder, Lock, holder, ray_job
from esper_ab.journal.reading import read

UNNAMED = Holder(pid=0, host="", started=0, since="")


def take_up(folder):
    return Journal.take_up(folder, list)


def is_held_here(folder):
    """This process is named as its holder, and nobody else gets in."""
    assert holder(folder).pid == os.getpid()
    with pytest.raises(UsageError, match=rf"in use by process {os.getpid()} on \S+ since \S+;"):
        Lock(folder)
    return True


def test_a_second_coordinator_is_refused_before_it_writes(path, journal_bytes):
    """The tail that it would cut off is what the first one is writing."""
    path.write_bytes(journal_bytes[:-10])
    lock = Lock(path.parent)
    with pytest.raises(UsageError, match=rf"in use by process {os.getpid()} on \S+ since \S+;"):
        take_up(path.parent)
    lock.close()
    assert path.read_bytes() == journal_bytes[:-10]
    assert sorted(one.name for one in path.parent.iterdir()) == [".lock", JOURNAL_NAME]


def test_no_flipped_bit_of_a_held_lock_lets_anybody_in_or_names_another_process(tmp_path):
    """`stop` sends a signal to the process that is named, if it has the start time that is named."""
    journal = Journal(tmp_path)
    path = tmp_path / LOCK_NAME
    whole = path.read_bytes()
    for at in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        assert str(holder(tmp_path)) == "another process"
    with pytest.raises(UsageError, match="in use by"):
        Lock(tmp_path)
    journal.close()


WITHOUT_NAME = r"is in use by another process, whose \.lock was removed; wait for it, stop it or choose another name"


def test_a_removed_lock_file_does_not_release_the_lock(tmp_path):
    """Whoever tidies up during a run, or believes that the file is stale, locks another file of that name."""
    journal = Journal(tmp_path, fixed_clock)
    journal.append(EVENTS[0])
    journal.commit()
    for _ in range(2):  # the first try leaves a new .lock behind
        (tmp_path / LOCK_NAME).unlink()
        assert holder(tmp_path) is not None
        for second in (take_up, Journal, Lock, repair):
            with pytest.raises(UsageError, match=WITHOUT_NAME):
                second(tmp_path)
        assert str(holder(tmp_path)) == "another process"
    complete(journal, EVENTS[1:])
    assert holder(tmp_path) is None
    again, events = take_up(tmp_path)
    assert events == EVENTS
    (tmp_path / LOCK_NAME).unlink()
    with pytest.raises(UsageError, match=WITHOUT_NAME):
        take_up(tmp_path)
    again.close()


def test_a_lock_file_that_is_removed_while_it_is_being_locked_is_no_lock(tmp_path, monkeypatch):
    """Two may each hold the lock of a file of that name; only one of these is still called so."""
    flock = fcntl.flock
    removed = []

    def remove_first(descriptor, operation):
        if not removed:
            removed.append((tmp_path / LOCK_NAME).unlink())
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    lock = Lock(tmp_path)
    monkeypatch.undo()
    assert removed
    assert is_held_here(tmp_path)
    lock.close()


def test_a_user_with_read_access_cannot_lock_the_writer_out(path):
    for_reading = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
    with path.open("rb") as reader:
        fcntl.fcntl(reader, fcntl.F_OFD_SETLK, for_reading)
        fcntl.flock(reader, fcntl.LOCK_EX)
        assert holder(path.parent) is None
        journal, events = take_up(path.parent)
        assert events == EVENTS
        assert is_held_here(path.parent)
        journal.close()
    assert path.with_name(LOCK_NAME).stat().st_mode & 0o077 == 0, "nobody else can open it, and so lock it"


LINE = '{{"pid":{pid},"host":"{host}","started":{started},"since":"2026-01-01T00:00:00+00:00"}}\n'


def locked_by_a_reader(folder, mode, **named):
    """A `.lock` of that mode, naming a process, locked by somebody who may only read it."""
    path = folder / LOCK_NAME
    own = LINE.format(**{"host": socket.gethostname(), "pid": 2**22 + 7, "started": 1, **named}).encode().rstrip(b"\n")
    path.write_bytes(b"%b %08x\n" % (own, zlib.crc32(own)))
    path.chmod(mode)
    reader = path.open("rb")
    fcntl.flock(reader, fcntl.LOCK_EX)
    return reader


def test_a_reader_of_an_old_lock_file_cannot_lock_the_owner_out(path):
    """As a directory that was copied or unpacked has it: its `.lock` names a process that is long gone."""
    with locked_by_a_reader(path.parent, 0o644) as reader:
        assert holder(path.parent) is None, "nobody carries it out"
        journal, events = take_up(path.parent)
        assert events == EVENTS
        assert is_held_here(path.parent)
        journal.close()
        assert not os.path.samestat(os.fstat(reader.fileno()), path.with_name(LOCK_NAME).stat())
    assert path.with_name(LOCK_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("mode", "named", "words"),
    [
        (0o600, {}, "another process;"),  # nobody else can have it; the one that it names is gone and holds nothing
        (0o644, {"host": "another-host"}, "on another-host since"),  # its holder may run there
        (0o644, {"pid": os.getpid(), "started": process_started(os.getpid())}, f"process {os.getpid()} on"),
    ],
    ids=["only ours", "elsewhere", "alive"],
)
def test_a_lock_that_may_be_a_holders_counts(path, mode, named, words):
    with locked_by_a_reader(path.parent, mode, **named), pytest.raises(UsageError, match=f"in use by .*{words}"):
        Lock(path.parent)
    Lock(path.parent).close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_another_user_sees_that_an_experiment_is_running():
    """Without being able to open .lock, which says by whom."""
    ask = (
        "import os, sys, pathlib; from esper_ab.journal.lock import holder\n"
        "os.setgid(65534), os.setuid(65534); print(holder(pathlib.Path(sys.argv[1])))"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)

        def asked():
            return subprocess.check_output([sys.executable, "-c", ask, folder], text=True).strip()

        journal = Journal(Path(folder), fixed_clock)
        assert asked() == "another process"
        journal.close()
        assert asked() == "None"


@pytest.mark.parametrize(
    ("call", "number", "kind", "words"),
    [
        ("pwrite", errno.ENOSPC, DiskFull, ".lock; "),
        ("pwrite", errno.EROFS, UsageError, ".lock: Read-only file system"),
        ("flock", errno.ENOSYS, UsageError, ".lock: Function not implemented"),
        ("fcntl", errno.ENOLCK, UsageError, "events.jsonl: No locks available"),
    ],
)
def test_what_cannot_be_locked_is_named(tmp_path, monkeypatch, call, number, kind, words):
    monkeypatch.setattr(os if call == "pwrite" else fcntl, call, failing(number))
    with pytest.raises(kind) as refused:
        Journal(tmp_path)
    assert f"{tmp_path}/{words}" in str(refused.value)


def test_a_file_system_without_locks_reports_no_holder(path, monkeypatch):
    path.with_name(LOCK_NAME).touch()
    for call in ("flock", "fcntl"):
        monkeypatch.setattr(fcntl, call, failing(errno.ENOSYS))
    assert holder(path.parent) is None


def write_lock(start, length):
    """Of these bytes; 0: to the end of the file, wherever that will be."""
    return struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)


@pytest.mark.parametrize(("start", "length"), [(0, 0), (0, 1), (1, 1), (1, 0), (40, 5), (1 << 20, 1), (1 << 20, 0)])
def test_whoever_writes_to_any_part_of_the_journal_keeps_others_out(path, start, length):
    """Another program, also behind its present end, where the next line comes."""
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, write_lock(start, length))
        assert holder(path.parent) == UNNAMED
        with pytest.raises(UsageError, match=WITHOUT_NAME):
            Lock(path.parent)
    assert holder(path.parent) is None
    Lock(path.parent).close()


def test_the_holder_locks_the_whole_journal(tmp_path):
    """So that another program that asks for a part of it finds it taken."""
    journal = Journal(tmp_path)
    with (tmp_path / JOURNAL_NAME).open("r+b") as file:
        for start, length in ((0, 1), (1, 1), (1 << 20, 1), (1 << 20, 0)):
            found = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_OFD_GETLK, write_lock(start, length)))
            assert found[:4] == (fcntl.F_WRLCK, os.SEEK_SET, 0, 0)
    journal.close()


def descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        (LOCK_NAME, "remove it; the lock must be a regular file"),
        (JOURNAL_NAME, "replace it with the journal itself; nothing is written through links"),
    ],
)
def test_a_symbolic_link_is_not_written_through(path, tmp_path_factory, name, remedy):
    folder = path.parent
    elsewhere = tmp_path_factory.mktemp("elsewhere") / name
    (folder / name).touch()
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    before = descriptors()
    there = elsewhere.read_bytes()
    for take in (Lock, take_up):
        with pytest.raises(UsageError) as refused:
            take(folder)
        assert str(refused.value) == f"{folder / name} is a symbolic link: {remedy}"
    assert elsewhere.read_bytes() == there
    assert descriptors() == before
    assert holder(folder) is None, "nobody has it"


def test_a_folder_at_the_path_of_the_journal_is_reported(tmp_path):
    (tmp_path / JOURNAL_NAME).mkdir()
    with pytest.raises(UsageError, match="replace it with the journal itself"):
        Lock(tmp_path)
    assert holder(tmp_path) is None


def test_no_descriptor_is_left_open(tmp_path, journal_bytes):
    """Not by a journal that was closed, nor by one that was refused, nor by asking."""
    used = tmp_path / "used"
    free = tmp_path / "free"
    damaged = tmp_path / "damaged"
    for folder in (used, free, damaged):
        folder.mkdir()
    (damaged / JOURNAL_NAME).write_bytes(b"x" + journal_bytes[1:])
    before = descriptors()
    journal = Journal(used)
    assert descriptors() == before + 3
    for take in (Lock, Journal, take_up):
        with pytest.raises(UsageError, match="in use by"):
            take(used)
    assert holder(used) is not None
    assert descriptors() == before + 3
    journal.close()
    assert holder(used) is None
    with pytest.raises(UsageError, match="choose another name"):
        Journal(used)
    with pytest.raises(JournalError, match="line 1"):
        take_up(damaged)
    for _ in range(2):
        Lock(free).close()
    assert descriptors() == before


def test_closing_again_changes_nothing(tmp_path):
    lock = Lock(tmp_path)
    lock.close()
    other = Lock(tmp_path)
    lock.close()
    assert is_held_here(tmp_path)
    other.close()


def test_the_line_of_a_holder_says_who_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps({"metadata": {"job_submission_id": "raysubmit_7"}}))
    (tmp_path / LOCK_NAME).write_bytes(b"x" * 1000)  # an older and longer line
    lock = Lock(tmp_path)
    found = holder(tmp_path)
    lock.close()
    assert (found.host, found.started) == (socket.gethostname(), process_started(os.getpid()))
    assert (found.slurm_job, found.ray_job) == ("4711", "raysubmit_7")
    assert str(found) == f"process {os.getpid()} on {socket.gethostname()} since {found.since}"
    assert str(UNNAMED) == "another process"
    assert len((tmp_path / LOCK_NAME).read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    ("told", "job"),
    [
        ('{"metadata": {"job_submission_id": "raysubmit_7"}}', "raysubmit_7"),
        ('{"metadata": {}}', ""),
        ("{}", ""),
        ("", ""),
        ("no json", ""),
        ('{"metadata": 3}', ""),
        ("[]", ""),
        ("\udcff", ""),
    ],
)
def test_what_ray_tells_of_a_job_is_its_number_or_nothing(told, job):
    assert ray_job(told) == job


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"no holder 00000000\n",
        b'{"pid":1} 00000000\n',
        b"\xff\xfe",
        b'{"pid":1,"host":"a"} 3f1b1e6a',
        *(b"%b %08x\n" % (own, zlib.crc32(own)) for own in (b"{}", b"\xff", b'{"pid":"1"}', b"")),
    ],
)
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
    assert is_held_here(tmp_path)
    complete(journal)
    assert holder(tmp_path) is None
    assert list(read(tmp_path / JOURNAL_NAME)) == EVENTS
