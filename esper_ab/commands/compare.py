"""`esper-ab compare`: what several experiments say together, or what outcomes from elsewhere say; exploratory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._external import RULE, columns_of, external_options, margin_of, printed, scales_as_told
from esper_ab.commands._options import PATH, shared_options
from esper_ab.contracts.errors import UsageError

if TYPE_CHECKING:
    from esper_ab.verdict.answer import Answer

_OF_BOTH = ("control", "alpha", "scores", "figure")  # flags that mean something for directories, too


@click.command(epilog=epilog(
    "esper-ab compare experiments/ONE experiments/OTHER", "esper-ab compare experiments/ONE experiments/OTHER --json",
    "esper-ab compare --csv results.csv --margin 2",
    "esper-ab compare --csv results.csv --margin 25 --columns group=algorithm,outcome=return",
))
@click.argument("folders", metavar="[EXPERIMENT EXPERIMENT…]", nargs=-1, type=ExperimentDirectory())
@click.option("--csv", "file", type=PATH, metavar="FILE", help="Outcomes of runs made "
              "elsewhere: a header with group, seed (or pair, or run), outcome, and where there are several task and "
              "cluster; a row per run.")
@external_options(*RULE, "rows", "paired", "scores", "columns", "figure")
@shared_options("json")
@click.pass_context
def command(
    context: click.Context, /, folders: tuple[Path, ...], file: Path | None, json: bool, **rule: Any
) -> None:  # fmt: skip
    """Compare the groups of several experiment directories, or of a CSV file; exploratory.

    Experiment directories must agree in task, budget, outcome, margin, arithmetic, code, versions and rng seed; what
    does not is named, with exit status 2. Groups with equal settings are one group, and must have equal records.
    Runs of one seed form a pair.

    In a CSV file the runs with one seed form a pair, in each task; pairs that share a cluster count as one. Where no
    seed is in two groups, or a column run stands in its place, runs form no pairs.
    """
    if (file is None) == (not folders):
        raise UsageError("compare takes two experiment directories or more, or --csv FILE: one of the two")
    if file is not None:
        found = _of_file(file, rule)
    else:
        told = [name for name in rule if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
        if of_file := [name for name in told if name not in _OF_BOTH]:
            raise UsageError(f"--{of_file[0]} goes with --csv; experiment directories say it themselves")
        # Here, so that --help waits for no scipy.
        from esper_ab.joint.together import compare_directories
        from esper_ab.verdict.analysis_plan import Rule

        found = compare_directories(folders, Rule(control=rule["control"], alpha=rule["alpha"]))
    click.echo(printed(found, scores=rule["scores"], figure=rule["figure"], json=json), nl=False)


def _of_file(file: Path, rule: dict[str, Any]) -> Answer:
    # Here, so that --help waits for no scipy.
    from esper_ab.external.csv_file import read_csv
    from esper_ab.verdict.analysis_plan import Rule
    from esper_ab.verdict.exploration import explore

    margin = margin_of(rule["margin"])
    observations = read_csv(file, columns_of(rule["columns"]))
    scales = scales_as_told(observations.tasks, margin, rule)
    declared = Rule(control=rule["control"], alpha=rule["alpha"])
    return explore(observations, scales, declared, paired=rule["paired"], rows=rule["rows"])
