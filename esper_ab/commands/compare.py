"""`esper-ab compare`: compare groups across experiments; exploratory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._external import external_options, printed
from esper_ab.commands._parameters import json_flag


@command_with(
    "esper-ab compare experiments/ONE experiments/OTHER", "esper-ab compare experiments/ONE experiments/OTHER --json",
)
@click.argument("folders", metavar="EXPERIMENT EXPERIMENT…", nargs=-1, required=True, type=ExperimentDirectory())
@external_options("control", "alpha", "scores", "figure", "verbose")
@json_flag
def command(folders: tuple[Path, ...], control: str, alpha: float, scores: str, **shown: Any) -> None:
    """Compare the groups of several experiment directories; exploratory.

    The experiments must have the same task, budget, outcome, margin, arithmetic, code, versions and rng seed;
    otherwise the command exits with status 2 and lists the differences. Groups with equal settings count as one group,
    and their records must be equal. Runs with the same seed form a pair.
    """
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import with_scores
    from esper_ab.readers.external_plan import told_by_task
    from esper_ab.readers.joint import compare_directories
    from esper_ab.verdict.analysis_plan import Rule

    found = compare_directories(folders, Rule(control=control, alpha=alpha))
    click.echo(printed(with_scores(found, told_by_task(scores)), **shown), nl=False)
