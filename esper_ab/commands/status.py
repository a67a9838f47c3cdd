"""`esper-ab status`: how far an experiment directory is."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import joint_argument
from esper_ab.commands._options import shared_options
from esper_ab.joint.directory import is_joint
from esper_ab.live.status import status_json, status_text
from esper_ab.trackers.now import tracking_now, tracking_text


@click.command(epilog=epilog("esper-ab status experiments/EXPERIMENT", "esper-ab status experiments/EXPERIMENT --json"))
@joint_argument
@shared_options("json")
def command(experiment_dir: Path, json: bool) -> None:
    """Show how far EXPERIMENT is, from its journal, and what became of its trackers."""
    if is_joint(experiment_dir):
        from esper_ab.commands._joint import status_joint  # with execution and its plans

        status_joint(experiment_dir, json=json)
        return
    trackers = tracking_now(experiment_dir)
    if json:
        click.echo(status_json(experiment_dir, trackers=trackers))
    else:
        click.echo("\n".join([status_text(experiment_dir), *tracking_text(experiment_dir, trackers)]))
