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
    lock_holder = holder(experiment_dir)
    if lock_holder is not None:
        if lock_holder.pid and not (now or json):
            click.echo(
                f"signalled process {lock_holder.pid}; waiting for the current barrier (with --now, stop does not wait)"
            )
        end(experiment_dir, lock_holder, now=now)
    progress = status(experiment_dir)
    resume = ""
    if progress.state != "finished":
        resume = shell_command("resume", experiment_dir)
    if json:
        tree = {
            "experiment_dir": str(experiment_dir),
            "stopped": lock_holder is not None,
            "state": progress.state,
            "detail": progress.detail,
            "resume": resume,
        }
        click.echo(json_module.dumps(tree))
        return
    state: str = progress.state
    if progress.detail:
        state += f" ({progress.detail})"
    if lock_holder is None:
        state = f"not running; it is {state}"
    click.echo(typeable(f"{progress.experiment}: {state}"))
    if resume:
        click.echo(typeable(f"resume with: {resume}"))


def end(experiment_dir: Path, lock_holder: Holder, *, now: bool) -> None:
    """Interrupt the process `lock_holder` and wait until it has ended; UsageError if this machine cannot signal the
    process.

    With `now`, send a second signal once the first has been handled; two signals at once would be merged into one.
    """
    journal_reading = follow(experiment_dir / JOURNAL_NAME)
    process = _process(experiment_dir, lock_holder)
    polls_left = _LEAVE_POLLS
    _heeded(journal_reading)
    _interrupt(process)
    while polls_left:
        with suppress(psutil.TimeoutExpired):
            process.wait(_POLL_S)
            return
        polls_left -= holder(experiment_dir) != lock_holder
        if now and _heeded(journal_reading):
            _interrupt(process)
            now = False


def _process(experiment_dir: Path, lock_holder: Holder) -> psutil.Process:
    """Return the process `lock_holder` as a psutil object, so that a later process with the same PID is never
    signalled.
    """
    if lock_holder.host != socket.gethostname():
        remedy = "stop it there"
        if lock_holder.slurm_job.isdecimal():
            remedy = f"`scancel --batch --signal=TERM {lock_holder.slurm_job}` stops it from here"
        elif lock_holder.ray_job:
            remedy = f"`ray job stop {shlex.quote(lock_holder.ray_job)}` stops it from here"
        raise UsageError(f"{experiment_dir} is in use by {lock_holder}: {remedy}")
    if not lock_holder.pid:
        raise UsageError(f"{experiment_dir} is in use by a process that its .lock does not name: stop it there")
    try:
        process = psutil.Process(lock_holder.pid)
    except psutil.Error:
        raise UsageError(
            f"{experiment_dir} is in use by {lock_holder}, which is not visible here (a container?)"
        ) from None
    if process_started(lock_holder.pid) != lock_holder.started:
        raise UsageError(
            f"{experiment_dir} is in use by {lock_holder}, but this PID is another process here: stop it there"
        )
    return process


def _interrupt(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        try:
            process.send_signal(signal.SIGINT)
        except psutil.AccessDenied:
            raise UsageError("the experiment belongs to another user, and only that user can stop it") from None


def _heeded(journal_reading: Reading) -> bool:
    """Whether the journal has recorded an interrupt since `journal_reading` was last read."""
    return any([isinstance(event, Incident) and event.category == "interrupted" for event in journal_reading])
