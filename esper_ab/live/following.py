"""`esper-ab status --follow`: show the live view of an experiment that another process runs, or print lines of JSON."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from esper_ab.contracts.wording import shell_command, visible_line
from esper_ab.journal.events import ExperimentEnded, MilestoneReleased
from esper_ab.journal.fold import History
from esper_ab.live.console import rich_console
from esper_ab.live.terminal import LiveView
from esper_ab.live.viewer import Viewer
from esper_ab.readers.status import no_report, reported, status_of, status_text

_LOOKS, _POLL_S = 240, 0.25  # how often to look for a report, and the pause between


def follow_view(experiment_dir: Path) -> None:
    """Show the experiment in this terminal until it ends; Ctrl-C ends the viewer, and the experiment continues."""
    viewer, console = Viewer(experiment_dir), rich_console()
    looks = _LOOKS if viewer.state == "running" else 0  # the report may still be written
    try:
        if viewer.state == "running" and not console.is_terminal:
            click.echo(status_text(experiment_dir))  # the current state, since the next line may take a while
        if viewer.state == "running" or console.is_terminal:
            with LiveView(viewer.history.plan, console, history=viewer.history) as view:
                for events in viewer.batches():
                    for event in events:
                        view.observe(event)
                    view.tick()
        for _ in range(looks if viewer.state == "finished" else 0):
            if not is_reported(experiment_dir, viewer.history):
                time.sleep(_POLL_S)  # the coordinator is writing the report
    except KeyboardInterrupt:
        again, end = shell_command("status", experiment_dir, "--follow"), shell_command("stop", experiment_dir)
        click.echo(f"\nview closed; the experiment continues. To follow it again: {again}; to stop it: {end}")
        return
    click.echo(_last_words(experiment_dir, viewer) if console.is_terminal else status_text(experiment_dir))


def is_reported(experiment_dir: Path, history: History) -> bool:
    """Whether the page, which is written last, is there, and the verdicts are those of this journal."""
    if no_report(experiment_dir):
        return False
    return not history.design.comparisons or bool(reported(experiment_dir, history)[0])


def follow_json(experiment_dir: Path) -> None:
    """Print the status as a line of JSON: one line now, one after every barrier, and one at the end."""
    viewer = Viewer(experiment_dir)
    click.echo(_line(experiment_dir, viewer))
    try:
        for events in viewer.batches():
            kinds = set()
            for event in events:
                viewer.history.add(event)
                kinds.add(type(event))
            if kinds & {MilestoneReleased, ExperimentEnded} or viewer.state != "running":
                click.echo(_line(experiment_dir, viewer))
    except KeyboardInterrupt:
        return


def _line(experiment_dir: Path, viewer: Viewer) -> bytes:
    return msgspec.json.encode(status_of(experiment_dir, viewer.loaded()))


def _last_words(experiment_dir: Path, viewer: Viewer) -> str:
    name, ended = viewer.history.plan.experiment.name, viewer.history.ended
    if viewer.state == "finished":
        told = [line for one in reported(experiment_dir, viewer.history)[0] for line in one.lines]
        report = shell_command("report", experiment_dir)
        return "\n".join([f"{name}: finished; `{report}` shows {'the rest' if told else 'the verdict'}", *told])
    why = f": {visible_line(ended.detail)}" if ended and ended.detail else ""
    gone = ", because its coordinator is gone" if viewer.state == "stale" else why
    return f"{name}: {viewer.state}{gone}; `{shell_command('resume', experiment_dir)}` continues it"
