"""The lock of an experiment directory: one named holder; no second writer gets in, and no reader locks it out.

Locks of other programs on the journal keep a writer out; links and systems without some locks are handled, too.
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
    """Check that this process is named as the holder and that a second lock is refused."""
    assert holder(folder).pid == os.getpid()
    with pytest.raises(UsageError, match=rf"in use by process {os.getpid()} on \S+ since \S+;"):
        Lock(folder)
    return True


def test_a_second_coordinator_is_refused_before_it_writes(path, journal_bytes):
    """It must not cut off a line that the first coordinator is writing."""
    path.write_bytes(journal_bytes[:-10])
    lock = Lock(path.parent)
    with pytest.raises(UsageError, match=rf"in use by process {os.getpid()} on \S+ since \S+;"):
        take_up(path.parent)
    lock.close()
    assert path.read_bytes() == journal_bytes[:-10]
    assert sorted(file.name for file in path.parent.iterdir()) == [".lock", JOURNAL_NAME]


def test_a_damaged_lock_file_still_keeps_other_writers_out(tmp_path):
    """`stop` signals the named process if its start time matches, so a damaged line must name none."""
    journal = Journal(tmp_path)
    path = tmp_path / LOCK_NAME
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        flipped_lock = bytearray(whole)
        flipped_lock[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped_lock)
        assert str(holder(tmp_path)) == "another process"
    with pytest.raises(UsageError, match="in use by"):
        Lock(tmp_path)
    journal.close()


WITHOUT_NAME = r"is in use by another process, whose \.lock was removed; wait for it, stop it or choose another name"


def test_a_removed_lock_file_does_not_release_the_lock(tmp_path):
    """A user who removes a file that looks stale makes the next process lock a new file of that name."""
    journal = Journal(tmp_path, fixed_clock)
    journal.append(EVENTS[0])
    journal.commit()
    for _ in range(2):  # the first try leaves a new .lock behind
        (tmp_path / LOCK_NAME).unlink()
        assert holder(tmp_path) is not None
        for lock_writer in (take_up, Journal, Lock, repair):
            with pytest.raises(UsageError, match=WITHOUT_NAME):
                lock_writer(tmp_path)
        assert str(holder(tmp_path)) == "another process"
    complete(journal, EVENTS[1:])
    assert holder(tmp_path) is None
    reopened_journal, events = take_up(tmp_path)
    assert events == EVENTS
    (tmp_path / LOCK_NAME).unlink()
    with pytest.raises(UsageError, match=WITHOUT_NAME):
        take_up(tmp_path)
    reopened_journal.close()


def test_a_lock_file_removed_during_locking_is_created_again(tmp_path, monkeypatch):
    """Two processes may lock two files of this name, of which only one is still in the directory."""
    flock = fcntl.flock
    removed_files = []

    def remove_first(descriptor, operation):
        if not removed_files:
            removed_files.append((tmp_path / LOCK_NAME).unlink())
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    lock = Lock(tmp_path)
    monkeypatch.undo()
    assert removed_files
    assert is_held_here(tmp_path)
    lock.close()


def test_a_user_with_read_access_cannot_block_the_writer(path):
    read_lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
    with path.open("rb") as reader:
        fcntl.fcntl(reader, fcntl.F_OFD_SETLK, read_lock)
        fcntl.flock(reader, fcntl.LOCK_EX)
        assert holder(path.parent) is None
        journal, events = take_up(path.parent)
        assert events == EVENTS
        assert is_held_here(path.parent)
        journal.close()
    assert path.with_name(LOCK_NAME).stat().st_mode & 0o077 == 0, "nobody else can open it, and so lock it"


LINE = '{{"pid":{pid},"host":"{host}","started":{started},"since":"2026-01-01T00:00:00+00:00"}}\n'


def lock_as_a_reader(folder, mode, **holder_fields):
    """Write a `.lock` with this mode that names a process, and lock it through a read-only descriptor."""
    path = folder / LOCK_NAME
    holder_line = (
        LINE.format(**{"host": socket.gethostname(), "pid": 2**22 + 7, "started": 1, **holder_fields})
        .encode()
        .rstrip(b"\n")
    )
    path.write_bytes(b"%b %08x\n" % (holder_line, zlib.crc32(holder_line)))
    path.chmod(mode)
    reader = path.open("rb")
    fcntl.flock(reader, fcntl.LOCK_EX)
    return reader


def test_a_reader_of_an_old_lock_file_cannot_block_its_owner(path):
    """The `.lock` of a copied or unpacked directory names a process that has exited."""
    with lock_as_a_reader(path.parent, 0o644) as reader:
        assert holder(path.parent) is None, "nobody carries it out"
        journal, events = take_up(path.parent)
        assert events == EVENTS
        assert is_held_here(path.parent)
        journal.close()
        assert not os.path.samestat(os.fstat(reader.fileno()), path.with_name(LOCK_NAME).stat())
    assert path.with_name(LOCK_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("mode", "holder_fields", "words"),
    [
        (0o600, {}, "another process;"),  # nobody else can have it; the one that it names is gone and holds nothing
        (0o644, {"host": "another-host"}, "on another-host since"),  # its holder may run there
        (0o644, {"pid": os.getpid(), "started": process_started(os.getpid())}, f"process {os.getpid()} on"),
    ],
    ids=["only ours", "elsewhere", "alive"],
)
def test_a_lock_is_respected_if_it_may_belong_to_a_writer(path, mode, holder_fields, words):
    with lock_as_a_reader(path.parent, mode, **holder_fields), pytest.raises(UsageError, match=f"in use by .*{words}"):
        Lock(path.parent)
    Lock(path.parent).close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_other_users_can_see_that_an_experiment_is_running():
    """That user cannot open .lock, so the holder is not named."""
    script = (
        "import os, sys, pathlib; from esper_ab.journal.lock import holder\n"
        "os.setgid(65534), os.setuid(65534); print(holder(pathlib.Path(sys.argv[1])))"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)

        def ask_as_nobody():
            return subprocess.check_output([sys.executable, "-c", script, folder], text=True).strip()

        journal = Journal(Path(folder), fixed_clock)
        assert ask_as_nobody() == "another process"
        journal.close()
        assert ask_as_nobody() == "None"


@pytest.mark.parametrize(
    ("call", "number", "kind", "words"),
    [
        ("pwrite", errno.ENOSPC, DiskFull, ".lock; "),
        ("pwrite", errno.EROFS, UsageError, ".lock: Read-only file system"),
        ("flock", errno.ENOSYS, UsageError, ".lock: Function not implemented"),
        ("fcntl", errno.ENOLCK, UsageError, "events.jsonl: No locks available"),
    ],
)
def test_the_error_about_a_failed_lock_names_the_file(tmp_path, monkeypatch, call, number, kind, words):
    monkeypatch.setattr(os if call == "pwrite" else fcntl, call, failing(number))
    with pytest.raises(kind) as refusal:
        Journal(tmp_path)
    assert f"{tmp_path}/{words}" in str(refusal.value)


def test_a_file_system_without_locks_reports_no_holder(path, monkeypatch):
    path.with_name(LOCK_NAME).touch()
    for call in ("flock", "fcntl"):
        monkeypatch.setattr(fcntl, call, failing(errno.ENOSYS))
    assert holder(path.parent) is None


def write_lock(start, length):
    """Pack a write lock of these bytes; length 0 means to the end of the file, however it grows."""
    return struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)


@pytest.mark.parametrize(("start", "length"), [(0, 0), (0, 1), (1, 1), (1, 0), (40, 5), (1 << 20, 1), (1 << 20, 0)])
def test_a_lock_on_any_part_of_the_journal_keeps_other_writers_out(path, start, length):
    """The locked part may be behind the end of the file, where the next line goes."""
    with path.open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, write_lock(start, length))
        assert holder(path.parent) == UNNAMED
        with pytest.raises(UsageError, match=WITHOUT_NAME):
            Lock(path.parent)
    assert holder(path.parent) is None
    Lock(path.parent).close()


def test_the_holder_locks_the_whole_journal(tmp_path):
    """Another program that asks for a lock on a part of it is refused."""
    journal = Journal(tmp_path)
    with (tmp_path / JOURNAL_NAME).open("r+b") as file:
        for start, length in ((0, 1), (1, 1), (1 << 20, 1), (1 << 20, 0)):
            conflicting_lock = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_OFD_GETLK, write_lock(start, length)))
            assert conflicting_lock[:4] == (fcntl.F_WRLCK, os.SEEK_SET, 0, 0)
    journal.close()


def count_descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        (LOCK_NAME, "remove it; the lock must be a regular file"),
        (JOURNAL_NAME, "replace it with the journal itself; nothing is written through links"),
    ],
)
def test_locking_does_not_write_through_a_symbolic_link(path, tmp_path_factory, name, remedy):
    folder = path.parent
    outside_path = tmp_path_factory.mktemp("elsewhere") / name
    (folder / name).touch()
    (folder / name).rename(outside_path)
    (folder / name).symlink_to(outside_path)
    open_before = count_descriptors()
    contents = outside_path.read_bytes()
    for take in (Lock, take_up):
        with pytest.raises(UsageError) as refusal:
            take(folder)
        assert str(refusal.value) == f"{folder / name} is a symbolic link: {remedy}"
    assert outside_path.read_bytes() == contents
    assert count_descriptors() == open_before
    assert holder(folder) is None, "nobody has it"


def test_a_folder_at_the_path_of_the_journal_is_reported(tmp_path):
    (tmp_path / JOURNAL_NAME).mkdir()
    with pytest.raises(UsageError, match="replace it with the journal itself"):
        Lock(tmp_path)
    assert holder(tmp_path) is None


def test_closed_journals_leave_no_descriptor_open(tmp_path, journal_bytes):
    """Closed journals, refused journals and `holder` leave none open."""
    used_folder = tmp_path / "used"
    free_folder = tmp_path / "free"
    damaged_folder = tmp_path / "damaged"
    for folder in (used_folder, free_folder, damaged_folder):
        folder.mkdir()
    (damaged_folder / JOURNAL_NAME).write_bytes(b"x" + journal_bytes[1:])
    open_before = count_descriptors()
    journal = Journal(used_folder)
    assert count_descriptors() == open_before + 3
    for take in (Lock, Journal, take_up):
        with pytest.raises(UsageError, match="in use by"):
            take(used_folder)
    assert holder(used_folder) is not None
    assert count_descriptors() == open_before + 3
    journal.close()
    assert holder(used_folder) is None
    with pytest.raises(UsageError, match="choose another name"):
        Journal(used_folder)
    with pytest.raises(JournalError, match="line 1"):
        take_up(damaged_folder)
    for _ in range(2):
        Lock(free_folder).close()
    assert count_descriptors() == open_before


def test_closing_a_lock_twice_does_not_release_a_later_lock(tmp_path):
    lock = Lock(tmp_path)
    lock.close()
    second_lock = Lock(tmp_path)
    lock.close()
    assert is_held_here(tmp_path)
    second_lock.close()


def test_the_lock_file_names_process_host_and_cluster_job(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps({"metadata": {"job_submission_id": "raysubmit_7"}}))
    (tmp_path / LOCK_NAME).write_bytes(b"x" * 1000)  # an older and longer line
    lock = Lock(tmp_path)
    lock_holder = holder(tmp_path)
    lock.close()
    assert (lock_holder.host, lock_holder.started) == (socket.gethostname(), process_started(os.getpid()))
    assert (lock_holder.slurm_job, lock_holder.ray_job) == ("4711", "raysubmit_7")
    assert str(lock_holder) == f"process {os.getpid()} on {socket.gethostname()} since {lock_holder.since}"
    assert str(UNNAMED) == "another process"
    assert len((tmp_path / LOCK_NAME).read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    ("config", "job"),
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
def test_a_ray_job_is_identified_by_its_submission_id(config, job):
    assert ray_job(config) == job


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
def test_an_unreadable_lock_is_refused_without_naming_a_process(tmp_path, line):
    """The holder has not written its line yet, or the line is damaged."""
    lock = Lock(tmp_path)
    (tmp_path / LOCK_NAME).write_bytes(line)
    assert holder(tmp_path) is None, "without a journal nobody is seen behind a lock that names nobody"
    with pytest.raises(UsageError, match=f"{tmp_path} is in use by another process; wait for it"):
        Lock(tmp_path)
    lock.close()


def test_the_lock_works_without_open_file_description_locks(tmp_path, monkeypatch):
    monkeypatch.delattr(fcntl, "F_OFD_SETLK")
    monkeypatch.delattr(fcntl, "F_OFD_GETLK")
    journal = Journal(tmp_path)
    assert is_held_here(tmp_path)
    complete(journal)
    assert holder(tmp_path) is None
    assert list(read(tmp_path / JOURNAL_NAME)) == EVENTS
