"""`esper-ab compare`: what several experiments say together, and why some of them can say nothing together."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._completing import ExperimentDirectory
from esper_ab.commands._exit_status import epilog


@click.command(
    epilog=epilog(
        "esper-ab compare experiments/ONE experiments/OTHER",
        "esper-ab compare experiments/ONE experiments/OTHER --json",
    )
)
@click.argument(
    "experiment_dirs", metavar="EXPERIMENT EXPERIMENT…", nargs=-1, required=True, type=ExperimentDirectory()
)
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(experiment_dirs: tuple[Path, ...], json: bool) -> None:
    """Compare the groups of several experiment directories, where that can be done honestly.

    Task, budget, endpoint, arithmetic, code, versions and rng seed must be the same; what is not is named, with exit
    status 2. Groups with equal settings are one condition, and it is checked that their records are equal. Different
    ones are paired by replicate. That was not declared before the runs: the numbers are exploratory, without a verdict.
    """
    # Here, so that --help and completion wait for no scipy or matplotlib.
    from esper_ab.report.compared import compare, render_json, render_text

    compared = compare(experiment_dirs)
    click.echo(render_json(compared) if json else render_text(compared))
