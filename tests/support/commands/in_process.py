"""Call a command of `esper-ab` in this process, which saves the imports of a child.

Output that child processes write to a descriptor is not captured; use `capfd` for that output. Children that import
torch are forked from a process that has imported torch (`support.processes.warm_children`). The preflight's answer for
a built-in task is cached, because every preflight measures the machine.
"""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.contracts.child import Child
from esper_ab.control import preflight
from esper_ab.launchers.local import LocalLauncher
from support.processes import warm_children

_BEGIN = preflight.begin_here
_ANSWERS: dict[bytes, Answered] = {}  # by question


@dataclass(frozen=True)
class Answered:
    """A preflight child that has already exited."""

    answer: bytes
    complaint: bytes = b""
    returncode: int = 0

    def __enter__(self) -> Answered:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because no process was started."""

    def communicate(self, *, timeout: float) -> tuple[bytes, bytes]:
        return self.answer, self.complaint


def _begin_or_remember(command: Sequence[str], line: bytes) -> Answered | Child:
    question = json.loads(line)
    if question["user_rewards"] or question["trainer"] or question["task"] not in ("synthetic", "digits"):
        return _BEGIN(command, line)
    if line not in _ANSWERS:
        with _BEGIN(command, line) as child:
            _ANSWERS[line] = Answered(*child.communicate(), child.returncode)
    return _ANSWERS[line]


def esper_ab(*args: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`, undo its lasting changes to this process, and return its exit status and output."""
    arguments = list(map(str, args))
    (output, errors) = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    hang_up_handler = signal.getsignal(signal.SIGHUP)
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.chdir(folder or "."),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            patch.setattr(subprocess, "Popen", warm_children.Popen)
            if preflight.begin_here is _BEGIN:
                patch.setattr(preflight, "begin_here", _begin_or_remember)
                patch.setattr(LocalLauncher, "imports_torch_once", False)  # so that `begin_here` begins it
            status = invoke(group, arguments, "esper-ab")
    finally:
        signal.signal(signal.SIGHUP, hang_up_handler)
    return subprocess.CompletedProcess(arguments, status, *(_text(stream) for stream in (output, errors)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def stdout_of(*args: str | Path, folder: Path | None = None) -> str:
    """Run a command that must succeed and return its stdout."""
    process = esper_ab(*args, folder=folder)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
