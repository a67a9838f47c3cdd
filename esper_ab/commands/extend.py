"""`esper-ab extend`: more seeds for a finished experiment, under the stricter rule that this costs."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._going_on import allow_changed_code, detach_command, detach_flag, show_answer
from esper_ab.commands._launcher import launcher_of
from esper_ab.commands._options import LAUNCHER_FLAGS, shared_options
from esper_ab.live.console import outlive_terminal


@click.command(epilog=epilog(
    "esper-ab extend experiments/EXPERIMENT --seeds 20 --dry-run",
    "esper-ab extend experiments/EXPERIMENT --seeds 20 --detach",
))  # fmt: skip
@experiment_argument
@click.option("--seeds", type=click.IntRange(min=1), required=True, metavar="N", help="How many in all.")
@shared_options(*LAUNCHER_FLAGS)
@click.option("--dry-run", is_flag=True, help="Print what would be added and by which rule, and stop.")
@allow_changed_code
@shared_options("quiet", "json")
@detach_flag
def command(experiment_dir: Path, seeds: int, dry_run: bool, detach: bool, **options: Any) -> None:
    """Add seeds to a finished EXPERIMENT.

    The stricter rule of an extended plan then holds for what is undecided.
    """
    # Here, so that --help waits for no numpy, scipy or zmq.
    from esper_ab.execution.going_on import extend_run, preview

    quiet, json, allowed = options["quiet"], options["json"], options["allow_changed_code"]
    shown = preview(experiment_dir, seeds, allow_changed_code=allowed)
    if not json:
        click.echo(shown)
    elif dry_run:
        click.echo(json_module.dumps(asdict(shown)))
    if dry_run:
        return
    if detach:
        detach_command("extend", experiment_dir, "--seeds", str(seeds), options=options)
        return
    outlive_terminal(experiment_dir)
    launcher = launcher_of(options)
    watched = not (quiet or json)
    extend_run(experiment_dir, seeds, launcher, watched=watched, allow_changed_code=allowed)
    show_answer(experiment_dir, json=json)
