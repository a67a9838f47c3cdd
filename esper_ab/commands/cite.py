"""`esper-ab cite`: print BibTeX for the program, and an experiment's results as rows of a LaTeX table."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import ExperimentDirectory

if TYPE_CHECKING:
    from esper_ab.verdict.comparison import Comparison

_BIBTEX = """@software{{esper_ab,
  title   = {{esper_ab: paired, sequential comparison of training setups}},
  version = {{{}}},
}}"""
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "_%&#$"})


@command_with("esper-ab cite", "esper-ab cite experiments/EXPERIMENT")
@click.argument("experiment_dir", metavar="[EXPERIMENT]", required=False, type=ExperimentDirectory())
def command(experiment_dir: Path | None) -> None:
    """Print BibTeX for esper_ab, and the results of EXPERIMENT as rows of a LaTeX table.

    The columns: comparison, difference, interval, number of pairs, verdict.
    """
    click.echo(_BIBTEX.format(version("esper-ab")))
    if experiment_dir is None:
        return
    from esper_ab.api.loaded import load_experiment  # needs numpy, which the BibTeX entry does not

    loaded_experiment = load_experiment(experiment_dir)
    click.echo(f"\n% plan {loaded_experiment.history.plan.digest}")
    for comparison in loaded_experiment.comparisons:
        click.echo(_row(comparison))


def _row(comparison: Comparison) -> str:
    """Return a comparison as a row of a LaTeX table."""
    a = comparison.question.a.translate(_SPECIAL)
    b = comparison.question.b.translate(_SPECIAL)
    estimate = "---"
    if comparison.estimate is not None:
        estimate = f"${comparison.estimate:+.3g}$"
    low, high, _ = comparison.at_look
    interval = "---"
    if low is not None and high is not None:
        interval = f"$[{low:.3g}, {high:.3g}]$"
    return f"{a} $-$ {b} & {estimate} & {interval} & {len(comparison.pairs)} & {comparison.verdict} \\\\"
