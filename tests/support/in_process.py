"""A command of `esper-ab` called in this process: what a process of its own would say, without its imports.

What its children print to a descriptor is not in the answer; `capfd` has it.
"""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
from pathlib import Path

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group


def esper_ab(*args: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Called in `folder`; exit status and output. What a command does to its process for good is taken back."""
    words, (out, error) = list(map(str, args)), (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    hang_up = signal.getsignal(signal.SIGHUP)
    try:
        with contextlib.chdir(folder or "."), contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            status = invoke(group, words, "esper-ab")
    finally:
        signal.signal(signal.SIGHUP, hang_up)
    return subprocess.CompletedProcess(words, status, *(_text(stream) for stream in (out, error)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def done(*args: str | Path, folder: Path | None = None) -> str:
    """What it prints; it has to succeed."""
    ended = esper_ab(*args, folder=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
