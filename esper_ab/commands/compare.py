"""`esper-ab compare`: compare groups across experiments; exploratory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._external import external_options, printed, status_of
from esper_ab.commands._parameters import json_flag
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import typeable

if TYPE_CHECKING:
    from esper_ab.readers.agreement import Source
    from esper_ab.verdict.comparison import Comparison


@command_with(
    "esper-ab compare experiments/ONE experiments/OTHER",
    "esper-ab compare experiments/ONE experiments/OTHER --json",
)
@click.argument("folders", metavar="EXPERIMENT EXPERIMENT…", nargs=-1, required=True, type=ExperimentDirectory())
@external_options("control", "alpha", "scores", "figure", "verbose")
@json_flag
@click.pass_context
def command(
    context: click.Context, /, folders: tuple[Path, ...], control: str, alpha: float, scores: str, **output: Any
) -> int:
    """Compare the groups of several experiment directories; exploratory.

    The experiments must have the same task, budget, outcome, margin, arithmetic, code, versions and rng seed;
    otherwise the command exits with status 2 and lists the differences. Groups with equal settings count as one group,
    and their records must be equal. Runs with the same seed form a pair.

    If only the rng seed differs, the experiments replicate each other: the verdict of each is shown beside the others.
    """
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import with_scores
    from esper_ab.readers.compared import compare_sources, read_sources
    from esper_ab.readers.replications import are_replications
    from esper_ab.readers.scales import read_by_task
    from esper_ab.verdict.analysis_plan import Rule

    sources = read_sources(folders)
    if are_replications(sources):
        _refuse(context, "control", "alpha", "scores", "figure")
        return _show_replications(sources, json=output["json"], verbose=output["verbose"])
    verdicts = compare_sources(sources, Rule(control=control, alpha=alpha))
    click.echo(printed(with_scores(verdicts, read_by_task(scores)), **output), nl=False)
    return status_of(verdicts.comparisons)


def _refuse(context: click.Context, *names: str) -> None:
    """Raise UsageError if a flag is given that replications have no use for."""
    for name in names:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(
                f"--{name} is not for replications (these experiments differ only in their rng seed), because each is "
                "judged by its own plan"
            )


def _show_replications(sources: Sequence[Source], *, json: bool, verbose: bool) -> int:
    """Print the verdicts of experiments that replicate each other, as JSON or text, and return the exit status."""
    from esper_ab.readers.replications import remarks  # with scipy
    from esper_ab.report.content import content
    from esper_ab.report.replications import replications_json, replications_report
    from esper_ab.report.text import render_text

    experiments = [(name, content(history, place=name)) for name, history in sources]
    differences = remarks(sources)
    if json:
        click.echo(replications_json(experiments, differences))
    else:
        click.echo(typeable(render_text(replications_report(experiments, differences), in_full=verbose)), nl=False)
    comparisons: list[Comparison] = []
    for _, item in experiments:
        comparisons += item.comparisons
    return status_of(comparisons)
