"""`esper-ab attach`: look at an experiment that goes on elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import experiment_argument


@click.command(
    epilog=epilog("esper-ab attach experiments/EXPERIMENT", "esper-ab attach experiments/EXPERIMENT --json | tail -n 1")
)
@experiment_argument
@click.option("--json", is_flag=True, help="`status` as a line of JSON now, after every barrier, and at the end.")
def command(experiment_dir: Path, json: bool) -> None:
    """Show EXPERIMENT as its own terminal would.

    Any number of viewers may attach; nothing that they do changes the experiment. Ctrl-C leaves it.
    """
    from esper_ab.live.attach import attach, attach_json  # with rich: --help is fast

    if json:
        attach_json(experiment_dir)
    else:
        attach(experiment_dir)
