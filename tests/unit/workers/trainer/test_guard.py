from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workers.trainer import guard

_TREE = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], process_group=0)
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
os.replace(sys.argv[1], sys.argv[2])
"""


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", guard.__file__, *words], stdin=subprocess.PIPE, start_new_session=True
    )


def status_of(guarded: subprocess.Popen[bytes]) -> int:
    """Wait for a guard's end with its stdin open, as a worker does."""
    status = guarded.wait()
    assert guarded.stdin is not None
    guarded.stdin.close()
    return status


def ended(pid: int) -> bool:
    """Wait until a process that is not ours has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    end = select.poll()
    end.register(descriptor, select.POLLIN)
    found = bool(end.poll(30_000))
    os.close(descriptor)
    return found


def started(tmp_path: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A guard whose program has a child in a process group of its own, and both of their ids."""
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    program = _TREE.replace("os.replace(sys.argv[1], sys.argv[2])", "import signal; signal.pause()")
    guarded = start(sys.executable, "-c", program, str(pids))
    return guarded, [int(word) for word in pids.read_text().split()]


@pytest.mark.parametrize("status", [0, 3])
def test_its_status_is_the_program_s(status: int) -> None:
    guarded = start(sys.executable, "-c", f"raise SystemExit({status})")
    assert status_of(guarded) == status


def test_a_signal_that_ended_the_program_is_told_by_the_status() -> None:
    guarded = start(sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert status_of(guarded) == 128 + signal.SIGKILL


def test_a_program_that_is_not_there_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert status_of(start("no-such-program")) == 127
    assert "no-such-program: No such file or directory" in capfd.readouterr().err


def test_nothing_is_left_when_the_other_end_of_its_stdin_closes(tmp_path: Path) -> None:
    guarded, pids = started(tmp_path)
    assert guarded.stdin is not None
    guarded.stdin.close()
    assert guarded.wait() == 128 + signal.SIGKILL
    assert all(ended(pid) for pid in pids)


def test_the_program_ends_with_a_guard_that_is_killed(tmp_path: Path) -> None:
    guarded, (program, child) = started(tmp_path)
    guarded.kill()
    assert status_of(guarded) == -signal.SIGKILL
    assert ended(program)
    os.kill(child, signal.SIGKILL)  # of a program that is killed with its guard a child may be left


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    pids, program = tmp_path / "pids", _TREE
    guarded = start(sys.executable, "-c", program, str(tmp_path / "writing"), str(pids))
    assert status_of(guarded) == 0
    assert all(ended(int(word)) for word in pids.read_text().split())
