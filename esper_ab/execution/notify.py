"""`--notify COMMAND`: tells somebody of the end of an experiment, of a pause and of a loss, by a command of his own.

The command is run without a shell, one at a time, on a thread that nobody waits for before the experiment has ended.
What it prints is in logs/notify.log; one that fails, or takes longer than its limit, is a warning on stderr and a line
there. It is no entry of the ledger, which lists what may explain a difference.
"""

from __future__ import annotations

import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from esper_ab.contracts.below import open_below
from esper_ab.contracts.endings import how_ended
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import Progress
from esper_ab.contracts.run_files import LOGS
from esper_ab.contracts.visible import visible_line
from esper_ab.control.observers import Observed, Pause
from esper_ab.journal.events import ExperimentEnded, Ledger

LIMIT_S = 30.0  # of one command
LOG = f"{LOGS}/notify.log"
PLACEHOLDERS = ("event", "text", "experiment")
_LOSSES = ("worker_death", "hung_worker", "dropped_pair")
_WAITING = 20  # commands that may wait for their turn; what happens meanwhile is not told
_LEAVE_S = 2.0  # after SIGTERM


def parse_notify(command: str | None) -> tuple[str, ...]:
    """The words of the command, none without one; UsageError when it has none, or its program cannot be found."""
    if command is None:
        return ()
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--notify {command}: {error}") from None
    if not words:
        raise UsageError("--notify: a command is missing, as in --notify 'mail -s {text} me@example.org'")
    if shutil.which(words[0]) is None:
        raise UsageError(f"--notify: there is no program {words[0]}; it is run without a shell, from {Path.cwd()}")
    return words


def told(event: Observed) -> tuple[str, str] | None:
    """What is told of an event: which kind it is, and a line; None for most events."""
    match event:
        case ExperimentEnded(status=status, detail=detail):
            return "end", f"{status}: {detail}" if detail else status
        case Pause():
            return "pause", str(event)
        case Ledger(category=category, detail=detail) if category in _LOSSES:
            return "loss", detail
    return None


def filled(words: tuple[str, ...], values: dict[str, str]) -> list[str]:
    """The words with each {placeholder} replaced; without any the text is one more word."""
    found = list(words)
    for name in PLACEHOLDERS:
        found = [word.replace(f"{{{name}}}", values[name]) for word in found]
    return found if found != list(words) else [*found, values["text"]]


class Notify:
    """An observer that starts the command and goes on."""

    def __init__(self, experiment_dir: Path, words: tuple[str, ...], limit_s: float = LIMIT_S) -> None:
        self._experiment_dir, self._words, self._limit_s = experiment_dir.absolute(), words, limit_s
        self._directory = Path.cwd()  # for the command, wherever users' code goes meanwhile
        self._due: queue.Queue[tuple[str, str] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._work, name="notify", daemon=True)
        self._thread.start()

    def observe(self, event: Observed) -> None:
        found = None if isinstance(event, Progress) else told(event)
        if found is None:
            return
        if found[0] == "end":
            with suppress(queue.Empty):  # it is told, whatever else is not
                while self._due.full():
                    self._due.get_nowait()
        try:
            self._due.put_nowait(found)
        except queue.Full:
            self._warn(f"is {_WAITING} events behind, so that this one is not told: {found[1]}")

    def settle(self, *_: object) -> None:
        """After the experiment: wait for the commands that are due, for the limit of one command in all."""
        deadline = time.monotonic() + self._limit_s + _LEAVE_S
        with suppress(queue.Full, KeyboardInterrupt):
            self._due.put(None, timeout=self._limit_s)
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (due := self._due.get()) is not None:
            event, text = due
            folder = self._experiment_dir
            values = {"event": event, "text": visible_line(f"{folder.name}: {text}"), "experiment": str(folder)}
            try:
                problem = self._run(filled(self._words, values))
            except OSError as error:
                problem = f"could not be started: {error.strerror}"
            if problem:
                self._warn(f"{problem} (it was to tell of: {text})")

    def _run(self, command: list[str]) -> str:
        """Run it to its end or its limit; what went wrong, "" for nothing."""
        with os.fdopen(self._log(), "ab") as log:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._directory, start_new_session=True
            )
        try:
            status = child.wait(self._limit_s)
        except subprocess.TimeoutExpired:
            _end(child)
            return f"did not end within {self._limit_s:.0f} s and was ended"
        return how_ended(status) if status else ""

    def _log(self) -> int:
        return open_below(self._experiment_dir, LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def _warn(self, problem: str) -> None:
        line = visible_line(f"--notify {shlex.join(self._words)}: it {problem}")
        with suppress(OSError):
            sys.stderr.write(f"warning: {line}\n")
        with suppress(OSError), os.fdopen(self._log(), "a") as log:
            log.write(f"{line}\n")


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the command with all that it has started: by SIGTERM, then by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_LEAVE_S)
            return
