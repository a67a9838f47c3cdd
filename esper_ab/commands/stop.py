"""`esper-ab stop`: Ctrl-C for an experiment whose terminal is not here."""

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
from esper_ab.contracts.wording import shell_command
from esper_ab.journal.events import Incident
from esper_ab.journal.file import JOURNAL_NAME, Reading
from esper_ab.journal.load import follow
from esper_ab.journal.lock import Holder, holder
from esper_ab.readers.status import status

_POLL_S = 0.2
_LEAVE_POLLS = 25  # 5 s for a process to end once it has let go of the experiment; one with other work does not


@command_with("esper-ab stop experiments/EXPERIMENT", "esper-ab stop experiments/EXPERIMENT --now")
@experiment_argument
@switch("--now", "Do not wait for the barrier in progress: as Ctrl-C twice.")
@json_flag
def command(experiment_dir: Path, now: bool, json: bool) -> None:
    """End EXPERIMENT in order, as Ctrl-C does, and wait until it has ended.

    What was recorded is kept, and `esper-ab resume` goes on with it.
    """
    status(experiment_dir)  # refuses what is no experiment directory
    by = holder(experiment_dir)
    if by is not None:
        if by.pid and not (now or json):
            click.echo(f"told process {by.pid}; waiting for its barrier in progress, which --now would not")
        end(experiment_dir, by, now=now)
    found = status(experiment_dir)
    resume = "" if found.state == "finished" else shell_command("resume", experiment_dir)
    tree = {
        "experiment_dir": str(experiment_dir), "stopped": by is not None, "state": found.state,
        "detail": found.detail, "resume": resume,
    }  # fmt: skip
    what = found.state + (f" ({found.detail})" if found.detail else "")
    told = f"{found.experiment}: {what}" if by else f"{found.experiment}: nobody carries it out; it is {what}"
    told += f"\nresume with: {resume}" if resume else ""
    click.echo(json_module.dumps(tree) if json else told)


def end(experiment_dir: Path, by: Holder, *, now: bool) -> None:
    """Interrupt the process `by` and return when it has ended; UsageError when it is out of reach.

    With `now` the second signal follows when the first was heeded: two at once would be one.
    """
    reading = follow(experiment_dir / JOURNAL_NAME)
    process, left = _process(experiment_dir, by), _LEAVE_POLLS
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
    """The process `by`: psutil signals no other that has been given its number meanwhile."""
    if by.host != socket.gethostname():
        there = "stop it there"
        if by.slurm_job.isdecimal():
            there = f"`scancel --batch --signal=TERM {by.slurm_job}` stops it from here"
        elif by.ray_job:
            there = f"`ray job stop {shlex.quote(by.ray_job)}` stops it from here"
        raise UsageError(f"{experiment_dir} is carried out by {by}: {there}")
    if not by.pid:
        raise UsageError(f"{experiment_dir} is carried out by a process that its .lock does not name: end it there")
    try:
        process = psutil.Process(by.pid)
    except psutil.Error:
        raise UsageError(f"{experiment_dir} is carried out by {by}, which is not visible here (a container?)") from None
    if process_started(by.pid) != by.started:
        raise UsageError(f"{experiment_dir} is carried out by {by}, but here that is another process: stop it there")
    return process


def _interrupt(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        try:
            process.send_signal(signal.SIGINT)
        except psutil.AccessDenied:
            raise UsageError("the experiment belongs to another user, who alone can stop it") from None


def _heeded(reading: Reading) -> bool:
    """Whether the journal has recorded an interrupt since `reading` was last read."""
    return any([isinstance(event, Incident) and event.category == "interrupted" for event in reading])
