"""`esper-ab attach`: look at a run that goes on elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._completing import RunDirectory
from esper_ab.commands._exit_status import epilog


@click.command(epilog=epilog("esper-ab attach runs/RUN", "esper-ab attach runs/RUN --json | tail -n 1"))
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option("--json", is_flag=True, help="`status` as a line of JSON now, after every barrier, and at the end.")
def command(run_dir: Path, json: bool) -> None:
    """Show RUN as its own terminal would.

    Any number of viewers may attach; nothing that they do changes the run. Ctrl-C leaves it.
    """
    from esper_ab.live.attach import attach, attach_json  # with rich: completion and --help are fast

    if json:
        attach_json(run_dir)
    else:
        attach(run_dir)
