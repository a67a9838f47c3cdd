"""`esper-ab status`: how far a run directory is."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._completing import RunDirectory
from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import shared_options
from esper_ab.live.status import status_json, status_text
from esper_ab.trackers.now import tracking_now, tracking_text


@click.command(epilog=epilog("esper-ab status runs/RUN", "esper-ab status runs/RUN --json"))
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@shared_options("json")
def command(run_dir: Path, json: bool) -> None:
    """Show how far RUN is, from its journal, and what became of its trackers."""
    trackers = tracking_now(run_dir)
    if json:
        click.echo(status_json(run_dir, trackers=trackers))
    else:
        click.echo("\n".join([status_text(run_dir), *tracking_text(run_dir, trackers)]))
