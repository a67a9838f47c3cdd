"""A supervisor and its workers, in this process and as a process of its own."""

import json
import os
import queue
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
from esper_ab.contracts.own_packages import isolated_command
from esper_ab.contracts.supervisor import NOT_STARTED, ORPHANED, Supervisor

ECHO_ORDER = ["sh", "-c", "read order; echo key; read go; echo $order $go >&2; exit 3"]
PAUSES = ["sh", "-c", "trap 'echo dumped >&2' USR1; echo ready; while :; do sleep 0.02; done"]
DUMP = int(signal.SIGUSR1)
KILL = int(signal.SIGKILL)
GAP_S = 1.0
IMPATIENT = f"""
from esper_ab.contracts import supervisor
supervisor._TICK_S, supervisor._GAP_S = 0.05, {GAP_S}
supervisor.supervise()
"""


Output = queue.SimpleQueue[bytes]


@pytest.fixture
def output() -> Output:
    return queue.SimpleQueue()


@pytest.fixture
def in_process(tmp_path: Path, output: Output) -> Supervisor:
    return Supervisor(str(tmp_path), output.put)


def test_the_end_of_a_supervised_worker_is_reported_with_its_stderr(in_process: Supervisor, output: Output) -> None:
    in_process.do(["begin", "w00/1", ECHO_ORDER, "order\n"])
    assert json.loads(output.get()) == ["said", "w00/1", "key"]
    in_process.do(["write", "w00/1", "go\n"])
    assert json.loads(output.get()) == ["ended", "w00/1", 3, "order go\n"]
    in_process.do(["write", "w00/1", "more\n"])
    in_process.do(["signal", "w00/1", DUMP])


def test_a_killed_worker_is_reported_even_if_its_child_keeps_the_output_open(
    in_process: Supervisor, output: Output
) -> None:
    in_process.do(["begin", "w00/1", ["sh", "-c", "sleep 600 & echo $!; wait"], ""])
    _, _, child = json.loads(output.get())
    try:
        in_process.do(["signal", "w00/1", KILL])
        assert json.loads(output.get()) == ["ended", "w00/1", -KILL, ""]
    finally:
        os.kill(int(child), KILL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make the supervisor's working directory, in which it starts workers."""
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def node(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    command = getattr(request, "param", None) or isolated_command(supervisor.__file__)
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        yield process
        process.kill()


def send(node: subprocess.Popen[bytes], *messages: list[object]) -> None:
    assert node.stdin is not None
    node.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    node.stdin.flush()


def receive(node: subprocess.Popen[bytes]) -> Any:
    assert node.stdout is not None
    return json.loads(node.stdout.readline())


@pytest.mark.parametrize("order", [("write", "go\n"), ("signal", DUMP), ("signal", KILL)])
def test_an_order_to_a_worker_that_is_not_running_is_ignored(
    node: subprocess.Popen[bytes], folder: Path, order: tuple[str, object]
) -> None:
    """The worker has ended, could not be started, or is unknown."""
    action, argument = order
    send(node, [action, "w09/1", argument], ["begin", "w00/1", ["true"], ""])
    assert receive(node) == ["said", "w00/1", ""]
    assert receive(node) == ["ended", "w00/1", 0, ""]
    shutil.rmtree(folder)
    send(node, [action, "w00/1", argument], ["begin", "w01/1", ECHO_ORDER, ""], [action, "w01/1", argument])
    _, name, status, reason = receive(node)
    assert (name, status) == ("w01/1", NOT_STARTED)
    assert reason == f"[Errno 2] No such file or directory: '{folder}'"
    assert node.stdin is not None
    node.stdin.close()
    assert node.wait() == ORPHANED


@pytest.mark.parametrize("node", [[sys.executable, "-c", IMPATIENT]], indirect=True)
def test_a_stack_dump_requested_while_the_supervisor_was_paused_is_skipped(node: subprocess.Popen[bytes]) -> None:
    send(node, ["begin", "w00/1", PAUSES, ""])
    assert receive(node) == ["said", "w00/1", "ready"]
    node.send_signal(signal.SIGSTOP)
    threading.Event().wait(1.5 * GAP_S)
    send(node, ["signal", "w00/1", DUMP])
    node.send_signal(signal.SIGCONT)
    threading.Event().wait(2 * GAP_S)
    send(node, ["signal", "w00/1", DUMP])
    threading.Event().wait(0.5 * GAP_S)
    send(node, ["signal", "w00/1", KILL])
    assert receive(node) == ["ended", "w00/1", -KILL, "dumped\n"]
