"""`--transport` of the commands that go on with a run: what the coordinator opens is what was asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.journals import Shape, Synthetic, planted_effect, write

PATIENCE_S = 120.0
UNDECIDED = Synthetic(groups={"a": Shape(), "b": Shape(accuracy=70.5, mode="simplified")}, replicates=2, episodes=2)
MORE = {"left": (), "seeds": ("--seeds", "4")}
EVENTS = {"left": planted_effect()[:40], "seeds": UNDECIDED.events()}


def listens(pid: int) -> bool:
    """Whether a process listens at a port, by proc(5)."""
    sockets, lines = set(), []
    with suppress(FileNotFoundError):  # it closes files meanwhile, or has ended
        for path in Path(f"/proc/{pid}/fd").iterdir():
            sockets.add(str(path.readlink()).removeprefix("socket:[").removesuffix("]"))
        lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return any(state == "0A" and inode in sockets for _, _, _, state, _, _, _, _, _, inode, *_ in lines)


def opened(folder: Path, process: subprocess.Popen[str]) -> str:
    """ipc: a socket of the hub is there; tcp: a port is listened at; else what went wrong."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        if any(folder.glob("esper-*/hub")):
            return "ipc"
        if listens(process.pid):
            return "tcp"
        time.sleep(0.01)
    return process.communicate()[1]


@pytest.mark.parametrize(("what", "transport"), [("left", "ipc"), ("left", "tcp"), ("seeds", "tcp")])
def test_a_run_goes_on_over_what_is_asked_for(tmp_path, sockets, what, transport):
    experiment_dir = write(tmp_path / "run", EVENTS[what])
    line = [sys.executable, "-m", "esper_ab.commands.cli", "resume", experiment_dir, *MORE[what], "--quiet"]
    line += ["--transport", transport]
    line.append("--allow-changed-code")  # the journal is made up, and so is the code that it names
    process = subprocess.Popen(
        line, env=os.environ | {"TMPDIR": sockets}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert opened(Path(sockets), process) == transport
    finally:
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(2.0)
            except subprocess.TimeoutExpired:
                continue
        process.communicate()
