"""`esper-ab status`: how far an experiment directory is, once or until it ends."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import joint_argument
from esper_ab.commands._parameters import json_flag, switch
from esper_ab.readers.joint_directory import is_joint, refuse_joint
from esper_ab.readers.status import status_json, status_text
from esper_ab.trackers.state import tracking_now, tracking_text


@command_with(
    "esper-ab status experiments/EXPERIMENT", "esper-ab status -f experiments/EXPERIMENT",
    "esper-ab status experiments/EXPERIMENT --json",
)  # fmt: skip
@joint_argument
@switch("--follow",
    "Show it as its own terminal would until it ends; Ctrl-C leaves it. With --json: a line of JSON now, after every "
    "barrier, and at the end.", "-f")
@json_flag
def command(experiment_dir: Path, follow: bool, json: bool) -> None:
    """Show how far EXPERIMENT is, from its journal, and what became of its trackers.

    Any number of viewers may follow an experiment; nothing that they do changes it.
    """
    if follow:
        refuse_joint(experiment_dir, "status --follow")
        from esper_ab.live.following import follow_json, follow_view  # with rich, which a look does not wait for

        (follow_json if json else follow_view)(experiment_dir)
        return
    if is_joint(experiment_dir):
        from esper_ab.commands._joint import status_joint  # with execution and its plans

        status_joint(experiment_dir, json=json)
        return
    trackers = tracking_now(experiment_dir)
    if json:
        click.echo(status_json(experiment_dir, trackers=trackers))
    else:
        click.echo("\n".join([status_text(experiment_dir), *tracking_text(experiment_dir, trackers)]))
