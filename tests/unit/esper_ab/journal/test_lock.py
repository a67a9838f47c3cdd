"""Who writes to an experiment directory: one holder, who is named; nobody else gets in, and nobody is locked out."""

import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest
from support.file_size import failing
from support.short_journal import EVENTS, fixed_clock

from esper_ab.commands.tidy import repair
from esper_ab.contracts.errors import DiskFull, UsageError
from esper_ab.contracts.process_start import process_started
from esper_ab.journal.file import JOURNAL_NAME, Journal
from esper_ab.journal.lock import LOCK_NAME, Lock, holder


def test_the_lock_of_a_process_that_was_killed_hinders_nobody(tmp_path):
    code = (
        "import os, sys, pathlib; from esper_ab.journal.file import Journal; "
        "journal = Journal(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert killed.returncode == -9
    assert "pid" in (tmp_path / ".lock").read_text()
    Journal.take_up(tmp_path, list)[0].close()


def test_a_second_coordinator_is_refused_before_it_writes(tmp_path, journal_bytes):
    """The tail that it would cut off is what the first one is writing."""
    torn = journal_bytes[:-10]
    (tmp_path / JOURNAL_NAME).write_bytes(torn)
    lock = Lock(tmp_path)
    with pytest.raises(UsageError, match=rf"in use by process {os.getpid()} on \S+ since \S+;"):
        Journal.take_up(tmp_path, list)
    lock.close()
    assert (tmp_path / JOURNAL_NAME).read_bytes() == torn
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", JOURNAL_NAME]


def test_no_flipped_bit_of_a_held_lock_lets_anybody_in_or_names_another_process(tmp_path):
    """`stop` sends a signal to the process that is named, if it has the start time that is named."""
    journal, path = Journal(tmp_path), tmp_path / LOCK_NAME
    whole = path.read_bytes()
    for at in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        named = holder(tmp_path)
        assert str(named) == "another process"
    with pytest.raises(UsageError, match="in use by"):
        Lock(tmp_path)
    journal.close()


WITHOUT_NAME = r"is in use by another process, whose \.lock was removed; wait for it, stop it or choose another name"


def test_a_removed_lock_file_lets_nobody_in(tmp_path):
    """Whoever tidies up during a run, or believes that the file is stale, locks another file of that name."""
    journal = Journal(tmp_path, fixed_clock)
    journal.append(EVENTS[0])
    journal.commit()
    for _ in range(2):  # the first try leaves a new .lock behind
        (tmp_path / LOCK_NAME).unlink()
        assert holder(tmp_path) is not None
        for second in (lambda folder: Journal.take_up(folder, list), Journal, Lock, repair):
            with pytest.raises(UsageError, match=WITHOUT_NAME):
                second(tmp_path)
        assert str(holder(tmp_path)) == "another process"
    journal.append(EVENTS[1])
    journal.close()
    assert holder(tmp_path) is None
    again, events = Journal.take_up(tmp_path, list)
    assert events == EVENTS[:2]
    (tmp_path / LOCK_NAME).unlink()
    with pytest.raises(UsageError, match=WITHOUT_NAME):
        Journal.take_up(tmp_path, list)
    again.close()


def test_a_lock_file_that_is_removed_while_it_is_being_locked_is_no_lock(tmp_path, monkeypatch):
    """Two may each hold the lock of a file of that name; only one of these is still called so."""
    flock, removed = fcntl.flock, []

    def remove_first(descriptor, operation):
        if not removed:
            removed.append((tmp_path / LOCK_NAME).unlink())
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    lock = Lock(tmp_path)
    monkeypatch.undo()
    assert removed
    assert holder(tmp_path).pid == os.getpid()
    with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"):
        Lock(tmp_path)
    lock.close()


def test_who_may_only_read_cannot_lock_the_writer_out(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal_bytes)
    for_reading = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
    with path.open("rb") as reader:
        fcntl.fcntl(reader, fcntl.F_OFD_SETLK, for_reading)
        fcntl.flock(reader, fcntl.LOCK_EX)
        assert holder(tmp_path) is None
        journal, events = Journal.take_up(tmp_path, list)
        assert len(events) == 3
        assert holder(tmp_path).pid == os.getpid()
        journal.close()
    assert (tmp_path / LOCK_NAME).stat().st_mode & 0o077 == 0, "nobody else can open it, and so lock it"


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


def test_whoever_could_read_an_old_lock_file_cannot_lock_the_owner_out(tmp_path, journal_bytes):
    """As a directory that was copied or unpacked has it: its `.lock` names a process that is long gone."""
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes)
    with locked_by_a_reader(tmp_path, 0o644) as reader:
        assert holder(tmp_path) is None, "nobody carries it out"
        journal, events = Journal.take_up(tmp_path, list)
        assert len(events) == 3
        assert holder(tmp_path).pid == os.getpid()
        with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"):
            Lock(tmp_path)
        journal.close()
        assert not os.path.samestat(os.fstat(reader.fileno()), (tmp_path / LOCK_NAME).stat())
    assert (tmp_path / LOCK_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("mode", "named", "words"),
    [
        (0o600, {}, "another process;"),  # the one that it names is gone and holds nothing
        (0o644, {"host": "another-host"}, "on another-host since"),
        (0o644, {"pid": os.getpid(), "started": process_started(os.getpid())}, f"process {os.getpid()} on"),
    ],
    ids=["nobody else can have it", "its holder may run elsewhere", "its holder runs"],
)
def test_a_lock_that_may_be_a_holders_counts(tmp_path, journal_bytes, mode, named, words):
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes)
    with locked_by_a_reader(tmp_path, mode, **named), pytest.raises(UsageError, match=f"in use by .*{words}"):
        Lock(tmp_path)
    Lock(tmp_path).close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_somebody_else_sees_that_a_run_is_carried_out():
    """Without being able to open .lock, which says by whom."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        journal = Journal(Path(folder), fixed_clock)
        ask = """
import os, sys, pathlib
from esper_ab.journal.lock import holder
os.setgid(65534), os.setuid(65534)
print(holder(pathlib.Path(sys.argv[1])))
"""

        def asked():
            command = [sys.executable, "-c", ask, folder]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

        assert asked() == "another process"
        journal.close()
        assert asked() == "None"


@pytest.mark.parametrize(("call", "number", "kind", "words"), [
    ("pwrite", errno.ENOSPC, DiskFull, ".lock; "),
    ("pwrite", errno.EROFS, UsageError, ".lock: Read-only file system"),
    ("flock", errno.ENOSYS, UsageError, ".lock: Function not implemented"),
    ("fcntl", errno.ENOLCK, UsageError, "events.jsonl: No locks available"),
])  # fmt: skip
def test_what_cannot_be_locked_is_named(tmp_path, monkeypatch, call, number, kind, words):
    monkeypatch.setattr(os if call == "pwrite" else fcntl, call, failing(number))
    with pytest.raises(kind) as refused:
        Journal(tmp_path)
    assert f"{tmp_path}/{words}" in str(refused.value)


def test_nobody_holds_what_a_file_system_without_locks_has(tmp_path, monkeypatch, journal_bytes):
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes)
    (tmp_path / LOCK_NAME).touch()
    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOSYS))
    monkeypatch.setattr(fcntl, "fcntl", failing(errno.ENOSYS))
    assert holder(tmp_path) is None
