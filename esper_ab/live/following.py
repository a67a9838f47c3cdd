"""`esper-ab status --follow`: show the live view of an experiment that another process runs, or print lines of JSON."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.journal.events import ExperimentEnded, MilestoneReleased
from esper_ab.journal.fold import History
from esper_ab.journal.lock import last_holder
from esper_ab.live.console import rich_console
from esper_ab.live.terminal import LiveView
from esper_ab.live.viewer import Viewer
from esper_ab.readers.reported import no_report, reported
from esper_ab.readers.status import status_of
from esper_ab.readers.status_text import status_text

_LOOKS = 240  # for a report
_POLL_S = 0.25  # between two looks


def follow_view(experiment_dir: Path) -> None:
    """Show the experiment in this terminal until it ends; Ctrl-C ends the viewer, and the experiment continues."""
    viewer = Viewer(experiment_dir)
    console = rich_console()
    try:
        if viewer.state == "running" and not console.is_terminal:
            click.echo(typeable(status_text(experiment_dir)))  # the current state, since the next line may take a while
        if viewer.state == "running" or console.is_terminal:
            with LiveView(viewer.history.plan, console, history=viewer.history) as view:
                for events in viewer.batches():
                    for event in events:
                        view.observe(event)
                    view.tick()
        await_report(experiment_dir, viewer)
    except KeyboardInterrupt:
        status_command = shell_command("status", experiment_dir, "--follow")
        end = shell_command("stop", experiment_dir)
        click.echo(
            typeable(
                f"\nview closed; the experiment continues. To follow it again: {status_command}; to stop it: {end}"
            )
        )
        return
    if console.is_terminal:
        click.echo(typeable(_last_words(experiment_dir, viewer)))
    else:
        click.echo(typeable(status_text(experiment_dir)))


def await_report(experiment_dir: Path, viewer: Viewer) -> None:
    """If the experiment is finished, wait up to a minute for the process that ran it to write the report.

    Returns at once if that process has ended. A process on another host cannot be seen, so this waits as if it ran.
    """
    if viewer.state != "finished":
        return
    for _ in range(_LOOKS):
        writes = last_holder(experiment_dir) is not None  # asked first: it ends after it has written
        if is_reported(experiment_dir, viewer.history) or not writes:
            return
        time.sleep(_POLL_S)


def is_reported(experiment_dir: Path, history: History) -> bool:
    """Whether the page, which is written last, is there, and the verdicts are those of this journal."""
    if no_report(experiment_dir):
        return False
    return not history.design.comparisons or bool(reported(experiment_dir, history)[0])


def follow_json(experiment_dir: Path) -> None:
    """Print the status as a line of JSON: one line now, one after every barrier, and one at the end."""
    viewer = Viewer(experiment_dir)
    try:
        await_report(experiment_dir, viewer)
        click.echo(_line(experiment_dir, viewer))
        for events in viewer.batches():
            kinds = set()
            for event in events:
                viewer.history.add(event)
                kinds.add(type(event))
            if kinds & {MilestoneReleased, ExperimentEnded} or viewer.state != "running":
                await_report(experiment_dir, viewer)  # returns at once before the end
                click.echo(_line(experiment_dir, viewer))
    except KeyboardInterrupt:
        return


def _line(experiment_dir: Path, viewer: Viewer) -> bytes:
    return msgspec.json.encode(status_of(experiment_dir, viewer.loaded()))


def _last_words(experiment_dir: Path, viewer: Viewer) -> str:
    name = viewer.history.plan.experiment.name
    end_event = viewer.history.ended
    if viewer.state == "finished":
        verdicts, _ = reported(experiment_dir, viewer.history)
        lines = [line for verdict in verdicts for line in verdict.lines]
        rest_words = "the rest" if lines else "the verdict"
        report = shell_command("report", experiment_dir)
        return "\n".join([f"{name}: finished; `{report}` shows {rest_words}", *lines])
    reason = ""
    if viewer.state == "stale":
        reason = ", because the process that ran it has died"
    elif end_event and end_event.detail:
        reason = f": {visible_line(end_event.detail)}"
    return f"{name}: {viewer.state}{reason}; `{shell_command('resume', experiment_dir)}` continues it"
