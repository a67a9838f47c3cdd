"""`esper-ab status`: show the progress of an experiment directory, once or until it ends."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import joint_argument
from esper_ab.commands._parameters import json_flag, switch
from esper_ab.contracts.shell_command import typeable
from esper_ab.readers.joint_directory import is_joint, refuse_joint
from esper_ab.readers.status_text import status_json, status_text
from esper_ab.trackers.now import tracking_now, tracking_text


@command_with(
    "esper-ab status experiments/EXPERIMENT",
    "esper-ab status -f experiments/EXPERIMENT",
    "esper-ab status experiments/EXPERIMENT --json",
)
@joint_argument
@switch(
    "--follow",
    "Show the live view until the experiment ends; Ctrl-C closes the view, and the experiment continues. With --json: "
    "print a line of JSON now, after every barrier, and at the end.",
    "-f",
)
@json_flag
def command(experiment_dir: Path, follow: bool, json: bool) -> None:
    """Show the progress of EXPERIMENT, and the state of its trackers.

    Any number of viewers may follow an experiment; they never affect it.
    """
    if follow:
        refuse_joint(experiment_dir, "status --follow")
        from esper_ab.live.following import follow_json, follow_view  # needs rich, which a plain status does not

        if json:
            follow_json(experiment_dir)
        else:
            follow_view(experiment_dir)
        return
    if is_joint(experiment_dir):
        from esper_ab.commands._joint import status_joint  # imports plans, which other experiments do not need

        status_joint(experiment_dir, json=json)
        return
    trackers = tracking_now(experiment_dir)
    if json:
        click.echo(status_json(experiment_dir, trackers=trackers))
    else:
        click.echo(typeable("\n".join([status_text(experiment_dir), *tracking_text(experiment_dir, trackers)])))
