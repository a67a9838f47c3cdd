"""Locks of an experiment directory.

The process that writes to the directory locks `.lock` and, once it exists, the journal. The kernel releases both locks,
however the process ends. `.lock` has one line, which names the process: a JSON object, followed by its CRC, such as

    {"pid":4711,"host":"node3","started":1234.56,"since":"2026-01-31T10:15:00+00:00",…} 0123abcd

The line remains after the process has ended, so it names a writer only while the lock is held. Afterwards, while that
process lives, it may be writing the report (`last_holder`). The journal is locked as well,
because `.lock` can be removed during a run. The next process would then create a new `.lock`, and lock that.

Other users must not be able to block the directory with locks of their own:

- Anyone who may read the journal can put a read lock on it. So our lock on it is a write lock (F_OFD_SETLK), and read
  locks are ignored.
- Anyone who may read `.lock` can lock it. So only its owner may read it.
- In a copied directory, other users may be able to read `.lock`. A lock on such a file is ignored, and the file is
  replaced, if the process that it names has ended and no process writes to the journal.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import time
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import remove_below
from esper_ab.contracts.process_start import process_started
from esper_ab.contracts.regular_file import NotRegular, open_regular
from esper_ab.contracts.unreadable import UNREADABLE

LOCK_NAME = ".lock"
JOURNAL_NAME = "events.jsonl"
_MODE = 0o600  # of `.lock`; anyone who can read it can lock it
_TRIES = 10  # because a process that only checks the lock holds it for an instant
_TRY_S = 0.02
_RAY_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # Ray's variable really has this name
_FLOCK = "hhqqi4x"  # struct flock of fcntl(2): kind, whence, start, length (0: all of it), process


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds an experiment directory."""

    pid: int  # 0: the holder has not written its line yet
    host: str
    started: float  # s since boot; with `pid` it identifies the process on `host`
    since: str  # when it took the experiment directory, ISO 8601
    slurm_job: str = ""  # the Slurm job that it belongs to; "" if none
    ray_job: str = ""  # the id that `ray job submit` gave its job; "" if none

    def __str__(self) -> str:
        if self.pid:
            return f"process {self.pid} on {self.host} since {self.since}"
        return "another process"


def ray_job(variable: str) -> str:
    """Return the job id from the environment variable that Ray sets for a job's command; "" if it sets none."""
    try:
        if variable:
            return _decode_job(os.fsencode(variable)).metadata.get("job_submission_id", "")
        return ""
    except UNREADABLE:
        return ""


class _RayJob(msgspec.Struct):
    metadata: dict[str, str] = {}


_decode_holder = msgspec.json.Decoder(Holder).decode
_decode_job = msgspec.json.Decoder(_RayJob).decode
_UNKNOWN = Holder(pid=0, host="", started=0, since="")


def _is_alive(named_holder: Holder) -> bool:
    """True if the holder runs; a process on another host is assumed to run."""
    return named_holder.pid > 0 and (
        named_holder.host != os.uname().nodename or process_started(named_holder.pid) == named_holder.started
    )


class Lock:
    """Exclusive write access to an experiment directory, until `close`."""

    def __init__(self, experiment_dir: Path) -> None:
        """Lock the directory.

        Raises UsageError if another process holds the directory (the error names the holder), if `.lock` or the journal
        is not a regular file, and if the file system has no locks.
        """
        self._experiment_dir = experiment_dir
        self._held: list[int] = []
        try:
            self._held.append(_acquire(experiment_dir))
            if (experiment_dir / JOURNAL_NAME).exists():
                self.hold_journal()
            self._sign()
        except NotRegular as error:
            self.close()
            remedy = "remove it; the lock must be a regular file"
            if error.filename == str(experiment_dir / JOURNAL_NAME):
                remedy = "replace it with the journal itself; nothing is written through links"
            raise UsageError(f"{error.filename} {error.strerror}: {remedy}") from None
        except BaseException:
            self.close()
            raise

    def hold_journal(self) -> None:
        """Lock the journal as well, once it exists. Raises UsageError if another process writes to it."""
        if not hasattr(fcntl, "F_OFD_SETLK"):
            return  # other locks are lost when any descriptor of the file is closed, so only `.lock` is locked
        journal = open_regular(self._experiment_dir / JOURNAL_NAME, os.O_RDWR)
        self._held.append(journal)
        try:
            fcntl.fcntl(journal, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
        except (BlockingIOError, PermissionError):
            if _has_writer(journal):
                holder_words = "another process, whose .lock was removed; wait for it, stop it or choose another name"
                raise UsageError(f"{self._experiment_dir} is in use by {holder_words}") from None
        except OSError as error:
            raise _no_locks(self._experiment_dir / JOURNAL_NAME, error) from None

    def close(self) -> None:
        """Release the lock."""
        while self._held:
            with suppress(OSError):  # even then, the descriptor and its lock are gone
                os.close(self._held.pop())

    def _sign(self) -> None:
        own_holder = Holder(
            pid=os.getpid(),
            host=os.uname().nodename,
            started=process_started(os.getpid()) or 0,
            since=datetime.now(UTC).isoformat(timespec="seconds"),
            slurm_job=os.environ.get("SLURM_JOB_ID", ""),
            ray_job=ray_job(os.environ.get(_RAY_JOB, "")),
        )
        line = _add_crc(msgspec.json.encode(own_holder))
        try:
            os.pwrite(self._held[0], line, 0)  # first, so that the file always begins with a whole line
            os.ftruncate(self._held[0], len(line))
        except OSError as error:
            error.filename = str(self._experiment_dir / LOCK_NAME)
            raise


def holder(experiment_dir: Path) -> Holder | None:
    """Return the current holder of `experiment_dir`, or None. Takes a shared lock for an instant."""
    try:
        descriptor = open_regular(experiment_dir / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return _unnamed_holder(experiment_dir)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        named_holder = _read_holder(descriptor)
        return named_holder if _is_alive(named_holder) else _unnamed_holder(experiment_dir)
    except OSError:  # the file system has no locks, so no process holds one
        return None
    finally:
        os.close(descriptor)
    return _unnamed_holder(experiment_dir)


def last_holder(experiment_dir: Path) -> Holder | None:
    """Return the process that holds `experiment_dir` or was the last to hold it, if it still runs; else None.

    A process on another host is assumed to run.
    """
    try:
        descriptor = open_regular(experiment_dir / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return None
    try:
        named_holder = _read_holder(descriptor)
    finally:
        os.close(descriptor)
    return named_holder if _is_alive(named_holder) else None


def _acquire(experiment_dir: Path) -> int:
    """Return a descriptor that holds the lock on the file currently named `.lock`."""
    for tries_left in reversed(range(_TRIES)):
        descriptor = open_regular(experiment_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT, _MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current(experiment_dir / LOCK_NAME, descriptor):
                os.fchmod(descriptor, _MODE)
                return descriptor
            lock_holder = _UNKNOWN
        except BlockingIOError:
            lock_holder = _read_holder(descriptor)
            if not _is_alive(lock_holder):
                lock_holder = _UNKNOWN
                if tries_left == 1 and _others_may_read(descriptor) and _unnamed_holder(experiment_dir) is None:
                    remove_below(experiment_dir, LOCK_NAME)
        except OSError as error:
            os.close(descriptor)
            raise _no_locks(experiment_dir / LOCK_NAME, error) from None
        os.close(descriptor)
        if tries_left:
            time.sleep(_TRY_S)
    raise UsageError(f"{experiment_dir} is in use by {lock_holder}; wait for it, stop it or choose another name")


def _no_locks(path: Path, error: OSError) -> UsageError:
    remedy = "an experiment directory must be on a file system that supports file locks"
    return UsageError(f"cannot lock {path}: {error.strerror}; {remedy}")


def _others_may_read(descriptor: int) -> bool:
    return bool(stat.S_IMODE(os.fstat(descriptor).st_mode) & ~_MODE)


def _is_current(path: Path, descriptor: int) -> bool:
    """True if `path` still names the file that was opened."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _unnamed_holder(experiment_dir: Path) -> Holder | None:
    """Return a holder if some process writes to the journal although `.lock` names no holder."""
    try:
        journal = os.open(experiment_dir / JOURNAL_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _UNKNOWN if _has_writer(journal) else None
    except (OSError, AttributeError):  # the file system has no locks, or this platform has none of this kind
        return None
    finally:
        os.close(journal)


def _has_writer(journal: int) -> bool:
    """True if another process holds a write lock on the journal."""
    blocking_lock = fcntl.fcntl(journal, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_RDLCK))
    return bool(struct.unpack(_FLOCK, blocking_lock)[0] != fcntl.F_UNLCK)


def _whole_file(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)


def _add_crc(holder_line: bytes) -> bytes:
    """Return the line of `.lock`, with a CRC: a damaged line could name another process, which `stop` would end."""
    return b"%b %08x\n" % (holder_line, zlib.crc32(holder_line))


def _read_holder(descriptor: int) -> Holder:
    line = os.pread(descriptor, 1000, 0).partition(b"\n")[0]
    holder_line = line.rpartition(b" ")[0]
    try:
        if line + b"\n" == _add_crc(holder_line):
            return _decode_holder(holder_line)
        return _UNKNOWN
    except UNREADABLE:
        return _UNKNOWN
