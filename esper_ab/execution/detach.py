"""Run the same command again in a session of its own: no terminal, no parent, its output in EXPERIMENT/console.log.

It is started as a new process rather than forked, so that it inherits no threads or sockets.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from esper_ab.contracts.errors import EsperError, Interrupted
from esper_ab.contracts.files import make_folder, open_regular, read_regular, remove_below
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.wording import how_ended, shell_command
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.lock import holder
from esper_ab.live.console import CONSOLE_NAME

_CONSOLE_VARIABLE = "ESPER_AB_CONSOLE"  # tells a detached command where its output goes until its directory exists
FOR_SEVERAL = "run it in a terminal that stays open, as in tmux or with nohup"  # a joint experiment cannot be detached
_POLL_S = 0.05
_LONG_S = 60.0  # after this we say that the command has not started yet; a rehearsal or a queue may take any time
_END_S = 10.0
_LAST_LINES = 20


@dataclass(frozen=True, kw_only=True)
class Detached:
    """A command that runs on its own."""

    experiment_dir: Path
    pid: int
    console: Path

    def shown(self, *, as_json: bool) -> str:
        """Return the message for the user, or JSON."""
        if as_json:
            return json.dumps(
                {"experiment_dir": str(self.experiment_dir), "pid": self.pid, "console": str(self.console)}
            )
        return (
            f"detached: process {self.pid}, its output in {self.console}\n"
            f"follow it: {shell_command('status', self.experiment_dir, '--follow')}\n"
            f"stop it:   {shell_command('stop', self.experiment_dir)}"
        )


class NotStarted(EsperError):
    """The detached command ended before its experiment began; the status is the command's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_code = status if status > 0 else 128 - status


def detach(module: str, args: Sequence[str], experiment_dir: Path) -> Detached:
    """Run module `module` with `args` detached; return once it holds `experiment_dir` and has written to the journal.

    `args` must not include --detach. Refuse whatever you can before this call; errors of the command come back as
    NotStarted.
    """
    console, environment = experiment_dir / CONSOLE_NAME, dict(os.environ)
    with ExitStack() as on_failure:
        first = console
        if not experiment_dir.is_dir():
            first = _first_console(experiment_dir)
            make_folder(first.parent)
            environment[_CONSOLE_VARIABLE] = str(first.absolute())
            on_failure.callback(remove_below, first.parent, first.name)
        begin, size = _end_of(first), _end_of(experiment_dir / JOURNAL_NAME)
        with os.fdopen(open_regular(first, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), "ab") as file:
            child = subprocess.Popen(
                child_command(module, *args, outlives=True), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                env=environment, start_new_session=True,
            )  # fmt: skip
        try:
            _wait(child, experiment_dir, size, first)
        except KeyboardInterrupt:
            _end(child)
            raise Interrupted(f"interrupted before the experiment began: process {child.pid} was stopped") from None
        except NotStarted as error:
            said = _said(first if first.exists() else console, begin)
            raise NotStarted(said or str(error), error.exit_code) from None
        except BaseException:
            _end(child)  # otherwise nobody would know about it
            raise
        on_failure.pop_all()
    return Detached(experiment_dir=experiment_dir, pid=child.pid, console=console)


def _first_console(experiment_dir: Path) -> Path:
    """Return the file for output until the experiment directory exists; it also reserves the name."""
    return experiment_dir.with_name(f".{experiment_dir.name}.{CONSOLE_NAME}")


def reserved(experiment_dir: Path) -> bool:
    """Whether a command that is being detached is about to create `experiment_dir`."""
    return _first_console(experiment_dir).exists()


def reserve(experiment_dir: Path) -> None:
    """Reserve the name for a command that will be detached; FileExistsError if it is taken."""
    make_folder(experiment_dir.parent)
    first = _first_console(experiment_dir)
    os.close(open_regular(first, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    if experiment_dir.exists():
        remove_below(first.parent, first.name)
        raise FileExistsError(experiment_dir)


def settle_console(experiment_dir: Path) -> None:
    """In a detached command that has created `experiment_dir`, move its output there; otherwise do nothing."""
    if first := os.environ.pop(_CONSOLE_VARIABLE, ""):
        Path(first).rename(experiment_dir / CONSOLE_NAME)


def _wait(child: subprocess.Popen[bytes], experiment_dir: Path, size: int, console: Path) -> None:
    """Wait until the child has written to the journal; NotStarted if it fails first. Say once if this takes long."""
    began, said = time.monotonic(), False
    while (status := child.poll()) is None:
        has = holder(experiment_dir)
        if has is not None and has.pid == child.pid and _end_of(experiment_dir / JOURNAL_NAME) > size:
            return
        if not said and time.monotonic() - began >= _LONG_S:
            said = True
            what = f"process {child.pid} has not begun yet; its output is in {console}"
            click.echo(f"{what}; waiting (Ctrl-C stops it)", err=True)
        time.sleep(_POLL_S)
    if status:
        raise NotStarted(f"the detached command {how_ended(status)} and printed nothing", status)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGINT)
    try:
        with suppress(subprocess.TimeoutExpired):
            child.wait(_END_S)
    finally:  # also after another Ctrl-C
        child.kill()
        child.wait()


def _end_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _said(console: Path, begin: int) -> str:
    """Return the error that the command printed, or else its last lines; "" if it printed nothing."""
    lines = read_regular(console)[begin:].decode(errors="replace").splitlines() if console.exists() else []
    errors = [index for index, line in enumerate(lines) if line.startswith("error: ")]
    kept = lines[errors[-1] :] if errors else lines[-_LAST_LINES:]
    return "\n".join(kept).removeprefix("error: ").strip()
