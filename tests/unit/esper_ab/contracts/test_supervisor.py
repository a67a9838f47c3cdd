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

GREETED = ["sh", "-c", "read order; echo key; read go; echo $order $go >&2; exit 3"]
PAUSES = ["sh", "-c", "trap 'echo dumped >&2' USR1; echo ready; while :; do sleep 0.02; done"]
DUMP = int(signal.SIGUSR1)
KILL = int(signal.SIGKILL)
GAP_S = 1.0
IMPATIENT = f"""
from esper_ab.contracts import supervisor
supervisor._TICK_S, supervisor._GAP_S = 0.05, {GAP_S}
supervisor.supervise()
"""


Said = queue.SimpleQueue[bytes]


@pytest.fixture
def said() -> Said:
    return queue.SimpleQueue()


@pytest.fixture
def made(tmp_path: Path, said: Said) -> Supervisor:
    return Supervisor(str(tmp_path), said.put)


def test_lines_go_in_and_out_and_the_end_says_all(made: Supervisor, said: Said) -> None:
    made.do(["begin", "w00/1", GREETED, "order\n"])
    assert json.loads(said.get()) == ["said", "w00/1", "key"]
    made.do(["write", "w00/1", "go\n"])
    assert json.loads(said.get()) == ["ended", "w00/1", 3, "order go\n"]
    made.do(["write", "w00/1", "more\n"])
    made.do(["signal", "w00/1", DUMP])


def test_a_signal_ends_a_worker_though_a_child_of_it_keeps_its_output_open(made: Supervisor, said: Said) -> None:
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
    command = getattr(request, "param", None) or isolated_command(supervisor.__file__)
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
