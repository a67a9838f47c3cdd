"""`esper-ab stop`: send Ctrl-C to an experiment that runs in another terminal."""

from __future__ import annotations

import json as json_module
import shlex
import signal
import socket
from contextlib import suppress
from pathlib import Path

import click
import psutil

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._parameters import json_flag, switch
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.process_start import process_started
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.journal.events import Incident
from esper_ab.journal.lock import JOURNAL_NAME, Holder, holder
from esper_ab.journal.reading import Reading
from esper_ab.journal.tail import follow
from esper_ab.readers.status import status

_POLL_S = 0.2
_LEAVE_POLLS = 25  # 5 s for a process to end after it released the experiment; it may have other work


@command_with("esper-ab stop experiments/EXPERIMENT", "esper-ab stop experiments/EXPERIMENT --now")
@experiment_argument
@switch("--now", "Do not wait for the current barrier; like a second Ctrl-C.")
@json_flag
def command(experiment_dir: Path, now: bool, json: bool) -> None:
    """Stop EXPERIMENT cleanly, as Ctrl-C does, and wait until it has ended.

    Its records are kept, and `esper-ab resume` continues from them.
    """
    status(experiment_dir)  # refuses other directories
    by = holder(experiment_dir)
    if by is not None:
        if by.pid and not (now or json):
            click.echo(f"signalled process {by.pid}; waiting for the current barrier (with --now, stop does not wait)")
        end(experiment_dir, by, now=now)
    progress = status(experiment_dir)
    resume = ""
    if progress.state != "finished":
        resume = shell_command("resume", experiment_dir)
    if json:
        tree = {
            "experiment_dir": str(experiment_dir),
            "stopped": by is not None,
            "state": progress.state,
            "detail": progress.detail,
            "resume": resume,
        }
        click.echo(json_module.dumps(tree))
        return
    state: str = progress.state
    if progress.detail:
        state += f" ({progress.detail})"
    if by is None:
        state = f"not running; it is {state}"
    click.echo(typeable(f"{progress.experiment}: {state}"))
    if resume:
        click.echo(typeable(f"resume with: {resume}"))


def end(experiment_dir: Path, by: Holder, *, now: bool) -> None:
    """Interrupt the process `by` and wait until it has ended; UsageError if this machine cannot signal the process.

    With `now`, send a second signal once the first has been handled; two signals at once would be merged into one.
    """
    reading = follow(experiment_dir / JOURNAL_NAME)
    process = _process(experiment_dir, by)
    left = _LEAVE_POLLS
    _heeded(reading)
    _interrupt(process)
    while left:
        with suppress(psutil.TimeoutExpired):
            process.wait(_POLL_S)
            return
        left -= holder(experiment_dir) != by
        if now and _heeded(reading):
            _interrupt(process)
            now = False


def _process(experiment_dir: Path, by: Holder) -> psutil.Process:
    """Return the process `by` as a psutil object, so that a later process with the same PID is never signalled."""
    if by.host != socket.gethostname():
        remedy = "stop it there"
        if by.slurm_job.isdecimal():
            remedy = f"`scancel --batch --signal=TERM {by.slurm_job}` stops it from here"
        elif by.ray_job:
            remedy = f"`ray job stop {shlex.quote(by.ray_job)}` stops it from here"
        raise UsageError(f"{experiment_dir} is in use by {by}: {remedy}")
    if not by.pid:
        raise UsageError(f"{experiment_dir} is in use by a process that its .lock does not name: stop it there")
    try:
        process = psutil.Process(by.pid)
    except psutil.Error:
        raise UsageError(f"{experiment_dir} is in use by {by}, which is not visible here (a container?)") from None
    if process_started(by.pid) != by.started:
        raise UsageError(f"{experiment_dir} is in use by {by}, but this PID is another process here: stop it there")
    return process


def _interrupt(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        try:
            process.send_signal(signal.SIGINT)
        except psutil.AccessDenied:
            raise UsageError("the experiment belongs to another user, and only that user can stop it") from None


def _heeded(reading: Reading) -> bool:
    """Whether the journal has recorded an interrupt since `reading` was last read."""
    return any([isinstance(event, Incident) and event.category == "interrupted" for event in reading])
