"""`esper-ab stop`: Ctrl-C for an experiment whose terminal is not here."""

from __future__ import annotations

import json as json_module
import os
import select
import shlex
import signal
import socket
from contextlib import suppress
from pathlib import Path

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.process_start import process_started
from esper_ab.contracts.shell_command import shell_command
from esper_ab.journal.events import Ledger
from esper_ab.journal.file import JOURNAL_NAME, Reading
from esper_ab.journal.lock import Holder, holder
from esper_ab.journal.tail import follow
from esper_ab.live.status import status

_POLL_MS = 200
_LEAVE_POLLS = 25  # 5 s for a process to end once it has let go of the experiment; one with other work does not


@click.command(epilog=epilog("esper-ab stop experiments/EXPERIMENT", "esper-ab stop experiments/EXPERIMENT --now"))
@click.argument("experiment_dir", metavar="EXPERIMENT", type=ExperimentDirectory())
@click.option("--now", is_flag=True, help="Do not wait for the barrier in progress: as Ctrl-C twice.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
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
    if json:
        click.echo(json_module.dumps({
            "experiment_dir": str(experiment_dir), "stopped": by is not None, "state": found.state,
            "detail": found.detail, "resume": resume,
        }))
        return
    what = found.state + (f" ({found.detail})" if found.detail else "")
    told = f"{found.experiment}: {what}" if by else f"{found.experiment}: nobody carries it out; it is {what}"
    click.echo(told + (f"\nresume with: {resume}" if resume else ""))


def end(experiment_dir: Path, by: Holder, *, now: bool) -> None:
    """Interrupt the process `by` and return when it has ended; UsageError when it is out of reach.

    With `now` the second signal follows when the first was heeded: two at once would be one.
    """
    reading = follow(experiment_dir / JOURNAL_NAME)
    process = _process(experiment_dir, by)
    ended, left = select.poll(), _LEAVE_POLLS
    ended.register(process, select.POLLIN)
    try:
        _heeded(reading)
        _send(process, signal.SIGINT)
        while left and not ended.poll(_POLL_MS):
            left -= holder(experiment_dir) != by
            if now and _heeded(reading):
                _send(process, signal.SIGINT)
                now = False
    finally:
        os.close(process)


def _process(experiment_dir: Path, by: Holder) -> int:
    """A descriptor of the process `by` itself: its number may belong to another by the time a signal is sent."""
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
        process = os.pidfd_open(by.pid)
    except OSError:
        raise UsageError(f"{experiment_dir} is carried out by {by}, which is not visible here (a container?)") from None
    if process_started(by.pid) != by.started:
        os.close(process)
        raise UsageError(f"{experiment_dir} is carried out by {by}, but here that is another process: stop it there")
    return process


def _send(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        try:
            signal.pidfd_send_signal(process, number)
        except PermissionError:
            raise UsageError("the experiment belongs to another user, who alone can stop it") from None


def _heeded(reading: Reading) -> bool:
    """Whether the journal has recorded an interrupt since `reading` was last read."""
    return any([isinstance(event, Ledger) and event.category == "interrupted" for event in reading])
