"""A guard and the program that it runs; a supervisor and its workers, in this process and as a process of its own."""

from __future__ import annotations

import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esper_ab.contracts import supervisor
from esper_ab.contracts.own_packages import alone_command
from esper_ab.contracts.supervisor import NOT_STARTED, ORPHANED, Supervisor

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


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(alone_command(supervisor.__file__, *words), stdin=subprocess.PIPE, start_new_session=True)


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
    """A guard whose program has children, some in a group or session of their own, and the ids of all."""
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    program = _TREE.replace("os.replace(sys.argv[1], sys.argv[2])", "import signal; signal.pause()")
    guarded = start(sys.executable, "-c", program, str(pids))
    return guarded, [int(word) for word in pids.read_text().split()]


@pytest.mark.parametrize(("ends", "status"), [
    ("raise SystemExit(0)", 0), ("raise SystemExit(3)", 3),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
])  # fmt: skip
def test_its_status_is_the_programs(ends: str, status: int) -> None:
    assert status_of(start(sys.executable, "-c", ends)) == status


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
    guarded, (program, *children) = started(tmp_path)
    guarded.kill()
    assert status_of(guarded) == -signal.SIGKILL
    assert ended(program)
    for child in children:  # of a program that is killed with its guard children may be left
        os.kill(child, signal.SIGKILL)


def test_times_are_of_all_that_the_program_started_in_whatever_session(tmp_path: Path) -> None:
    guarded, pids = started(tmp_path)
    found = supervisor.times(guarded.pid)
    assert guarded.stdin is not None
    guarded.stdin.close()
    guarded.wait()
    assert found.keys() >= {guarded.pid, *pids}  # and perhaps what has ended and was not waited for
    assert not supervisor.times(guarded.pid)


def test_an_orphan_that_ends_does_not_stay_until_the_program_does() -> None:
    assert status_of(start(sys.executable, "-c", _ORPHAN_ENDS)) == 0


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    pids, program = tmp_path / "pids", _TREE
    guarded = start(sys.executable, "-c", program, str(tmp_path / "writing"), str(pids))
    assert status_of(guarded) == 0
    assert all(ended(int(word)) for word in pids.read_text().split())


GREETED = ["sh", "-c", "read order; echo key; read go; echo $order $go >&2; exit 3"]
PAUSES = ["sh", "-c", "trap 'echo dumped >&2' USR1; echo ready; while :; do sleep 0.02; done"]
DUMP, KILL = int(signal.SIGUSR1), int(signal.SIGKILL)
GAP_S = 1.0
IMPATIENT = f"""
from esper_ab.contracts import supervisor
supervisor._TICK_S, supervisor._GAP_S = 0.05, {GAP_S}
supervisor.supervise()
"""


@pytest.fixture
def heard(tmp_path: Path) -> tuple[Supervisor, queue.SimpleQueue[bytes]]:
    said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    return Supervisor(str(tmp_path), said.put), said


def test_lines_go_in_and_out_and_the_end_says_all(heard: tuple[Supervisor, queue.SimpleQueue[bytes]]) -> None:
    made, said = heard
    made.do(["begin", "w00/1", GREETED, "order\n"])
    assert json.loads(said.get()) == ["said", "w00/1", "key"]
    made.do(["write", "w00/1", "go\n"])
    assert json.loads(said.get()) == ["ended", "w00/1", 3, "order go\n"]
    made.do(["write", "w00/1", "more\n"])
    made.do(["signal", "w00/1", DUMP])


def test_a_signal_ends_a_worker_though_a_child_of_it_keeps_its_output_open(
    heard: tuple[Supervisor, queue.SimpleQueue[bytes]],
) -> None:
    made, said = heard
    made.do(["begin", "w00/1", ["sh", "-c", "sleep 600 & echo $!; wait"], ""])
    _, _, child = json.loads(said.get())
    try:
        made.do(["signal", "w00/1", KILL])
        assert json.loads(said.get()) == ["ended", "w00/1", -KILL, ""]
    finally:
        os.kill(int(child), KILL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The supervisor's working directory, in which it starts workers."""
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def node(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    command = getattr(request, "param", None) or alone_command(supervisor.__file__)
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        yield process
        process.kill()


def tell(node: subprocess.Popen[bytes], *messages: list[object]) -> None:
    assert node.stdin is not None
    node.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    node.stdin.flush()


def hear(node: subprocess.Popen[bytes]) -> Any:
    assert node.stdout is not None
    return json.loads(node.stdout.readline())


@pytest.mark.parametrize("order", [("write", "go\n"), ("signal", DUMP), ("signal", KILL)])
def test_an_order_about_a_worker_that_is_not_there_is_none(
    node: subprocess.Popen[bytes], folder: Path, order: tuple[str, object]
) -> None:
    """It is over, it could not be started, or nobody has heard of it."""
    what, more = order
    tell(node, [what, "w09/1", more], ["begin", "w00/1", ["true"], ""])
    assert hear(node) == ["said", "w00/1", ""]
    assert hear(node) == ["ended", "w00/1", 0, ""]
    shutil.rmtree(folder)
    tell(node, [what, "w00/1", more], ["begin", "w01/1", GREETED, ""], [what, "w01/1", more])
    _, name, status, why = hear(node)
    assert (name, status) == ("w01/1", NOT_STARTED)
    assert why == f"[Errno 2] No such file or directory: '{folder}'"
    assert node.stdin is not None
    node.stdin.close()
    assert node.wait() == ORPHANED


@pytest.mark.parametrize("node", [[sys.executable, "-c", IMPATIENT]], indirect=True)
def test_stacks_that_were_asked_for_before_a_standstill_are_not_dumped(node: subprocess.Popen[bytes]) -> None:
    tell(node, ["begin", "w00/1", PAUSES, ""])
    assert hear(node) == ["said", "w00/1", "ready"]
    node.send_signal(signal.SIGSTOP)
    threading.Event().wait(1.5 * GAP_S)
    tell(node, ["signal", "w00/1", DUMP])
    node.send_signal(signal.SIGCONT)
    threading.Event().wait(2 * GAP_S)
    tell(node, ["signal", "w00/1", DUMP])
    threading.Event().wait(0.5 * GAP_S)
    tell(node, ["signal", "w00/1", KILL])
    assert hear(node) == ["ended", "w00/1", -KILL, "dumped\n"]
