"""A guard ends with its program, and the program ends with its guard."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from esper_ab.contracts import guard, users_shell
from esper_ab.contracts.own_packages import isolated_command

_TREE = """
import os, subprocess, sys
pauses = [sys.executable, "-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()"]
begins = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
started = [
    subprocess.Popen(words, stdout=subprocess.PIPE, **how) for words, how in (
        (pauses, {}), (pauses, {"process_group": 0}), (pauses, {"start_new_session": True}),
        ([sys.executable, "-c", begins, *pauses], {}),  # an orphan in a session of its own
    )
]
pids = [int(child.stdout.readline()) for child in started]
open(sys.argv[1], "w").write(" ".join(map(str, (os.getpid(), *pids))))
os.replace(sys.argv[1], sys.argv[2])
"""

_ORPHAN_ENDS = """
import os, signal, subprocess, sys
signal.alarm(60)
begins = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', '']).pid)"
orphan = int(subprocess.run([sys.executable, "-c", begins], capture_output=True).stdout)
while os.path.exists(f"/proc/{orphan}"): pass
"""

_ANOTHER_USERS = """
import os, signal, subprocess, sys
from esper_ab.contracts import guard
pauses = [sys.executable, "-c", "import signal; signal.alarm(60); signal.pause()"]
root, own = [subprocess.Popen(pauses, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid for _ in range(2)]
kill = os.kill
def refuse(pid, number):
    if pid == root:
        raise PermissionError
    kill(pid, number)
os.kill = refuse
guard._end_descendants()
print(os.path.exists(f"/proc/{root}"), os.path.exists(f"/proc/{own}"))
kill(root, signal.SIGKILL)
"""


def start_guard(*words: str, report: int | None = None) -> subprocess.Popen[bytes]:
    """Start a guard; `report` is the descriptor for its report, by default one that nobody reads."""
    unread = os.memfd_create("report")
    descriptor = unread if report is None else report
    shell = users_shell.of_this_process().for_guard()
    command = isolated_command(guard.__file__, shell, str(descriptor), *words)
    started = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, pass_fds=(descriptor,))
    os.close(unread)
    return started


def status_of(guard_process: subprocess.Popen[bytes]) -> int:
    """Wait for a guard's end with its stdin open, as a worker does."""
    status = guard_process.wait()
    assert guard_process.stdin is not None
    guard_process.stdin.close()
    return status


def has_ended(pid: int) -> bool:
    """Wait at most 30 s for the end of a process that is not our child; True if it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    end = select.poll()
    end.register(descriptor, select.POLLIN)
    exited = bool(end.poll(30_000))
    os.close(descriptor)
    return exited


def start_guarded_tree(tmp_path: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a guard whose program has children in several groups and sessions; return it and their ids."""
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    program = _TREE.replace("os.replace(sys.argv[1], sys.argv[2])", "import signal; signal.pause()")
    guard_process = start_guard(sys.executable, "-c", program, str(pids))
    return guard_process, [int(word) for word in pids.read_text().split()]


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(3)", 3),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    ],
)
def test_a_guard_exits_with_the_status_of_the_program(ends: str, status: int) -> None:
    assert status_of(start_guard(sys.executable, "-c", ends)) == status


def test_a_guard_reports_the_peak_memory_of_the_largest_process() -> None:
    peak, report = os.pipe()
    takes = "import subprocess, sys; bytearray(64 << 20); subprocess.run([sys.executable, '-c', 'bytearray(99 << 20)'])"
    guarded = start_guard(sys.executable, "-c", takes, report=report)
    os.close(report)
    assert status_of(guarded) == 0
    assert 99 << 20 < int(os.read(peak, 99)) < 150 << 20
    os.close(peak)


def test_a_guarded_program_does_not_inherit_the_report_descriptor() -> None:
    peak, report = os.pipe()
    guarded = start_guard("sh", "-c", f"test ! -e /proc/$$/fd/{report}", report=report)
    os.close(report)
    assert status_of(guarded) == 0
    os.close(peak)


def test_a_guard_keeps_the_exit_status_if_its_report_cannot_be_written() -> None:
    peak, report = os.pipe()
    os.close(peak)
    guarded = start_guard(sys.executable, "-c", "raise SystemExit(3)", report=report)
    os.close(report)
    assert status_of(guarded) == 3


def test_a_missing_program_is_reported_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert status_of(start_guard("no-such-program")) == 127
    assert "no-such-program: No such file or directory" in capfd.readouterr().err


def test_closing_the_stdin_of_a_guard_kills_all_descendants(tmp_path: Path) -> None:
    guard_process, pids = start_guarded_tree(tmp_path)
    assert guard_process.stdin is not None
    guard_process.stdin.close()
    assert guard_process.wait() == 128 + signal.SIGKILL
    assert all(has_ended(pid) for pid in pids)


def test_killing_a_guard_ends_its_program(tmp_path: Path) -> None:
    guard_process, (program, *children) = start_guarded_tree(tmp_path)
    guard_process.kill()
    assert status_of(guard_process) == -signal.SIGKILL
    assert has_ended(program)
    for child in children:  # the children of a program that is killed with its guard may survive
        os.kill(child, signal.SIGKILL)


def test_a_guard_reaps_orphans_while_the_program_runs() -> None:
    assert status_of(start_guard(sys.executable, "-c", _ORPHAN_ENDS)) == 0


def test_processes_left_by_a_program_are_killed_at_its_end(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = _TREE
    guard_process = start_guard(sys.executable, "-c", program, str(tmp_path / "writing"), str(pids))
    assert status_of(guard_process) == 0
    assert all(has_ended(int(word)) for word in pids.read_text().split())


def test_all_processes_beside_one_of_another_user_are_killed() -> None:
    """The kernel refuses the signal to a process of `sudo`. The exit status stays that of the program."""
    process = subprocess.run([sys.executable, "-c", _ANOTHER_USERS], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (0, "True False\n", "")
