"""`esper-ab figure`: write one figure of a report, for a paper."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._parameters import PATH, valued


@command_with(
    "esper-ab figure experiments/EXPERIMENT curves", "esper-ab figure experiments/EXPERIMENT effects --out effects.svg"
)
@experiment_argument
@click.argument("name", default="effects")
@valued("--out", "FILE", "Output file, ending in .pdf, .svg or .png. [default: NAME.pdf]", type=PATH)
def command(experiment_dir: Path, name: str, out: Path | None) -> None:
    """Write one figure of the report of EXPERIMENT as PDF, SVG or PNG.

    NAME is effects, curves, outcomes, pairs or any other figure of the report.
    """
    # Imported here, so that --help needs no matplotlib.
    from esper_ab.api.loaded import load_experiment
    from esper_ab.report.figures.external import write_figure

    path = out or Path(f"{name}.pdf")
    write_figure(load_experiment(experiment_dir).plot(name), path)
    click.echo(f"wrote {path}")
