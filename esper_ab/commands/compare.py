"""`esper-ab compare`: what several experiments say together, or what endpoints from elsewhere say; exploratory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._external import RULE, columns_of, external_options, margin_of, printed
from esper_ab.contracts.errors import UsageError


@click.command(epilog=epilog(
    "esper-ab compare experiments/ONE experiments/OTHER", "esper-ab compare experiments/ONE experiments/OTHER --json",
    "esper-ab compare --csv results.csv --margin 2",
    "esper-ab compare --csv results.csv --margin 25 --columns group=algorithm,endpoint=return",
))
@click.argument("folders", metavar="[EXPERIMENT EXPERIMENT…]", nargs=-1, type=ExperimentDirectory())
@click.option("--csv", "file", type=click.Path(path_type=Path), metavar="FILE", help="Endpoints of runs made "
              "elsewhere: a header with group, seed (or pair, or run), endpoint, and where there are several task and "
              "cluster; a row per run.")
@external_options(*RULE, "rows", "paired", "scores", "columns", "figure")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
@click.pass_context
def command(
    context: click.Context, /, folders: tuple[Path, ...], file: Path | None, json: bool, **rule: Any
) -> None:  # fmt: skip
    """Compare the groups of several experiment directories, or of a CSV file; exploratory.

    Of experiment directories task, budget, endpoint, arithmetic, code, versions and rng seed must be the same; what is
    not is named, with exit status 2. Groups with equal settings are one condition, and it is checked that their records
    are equal. Different ones are paired by replicate, without a verdict.

    Of a CSV file the runs with one seed form a pair, in each task; pairs that share a cluster count as one. Where no
    seed is in two groups, or a column run stands in its place, runs form no pairs. All other flags but --json are about
    it.
    """
    if (file is None) == (not folders):
        raise UsageError("compare takes two experiment directories or more, or --csv FILE: one of the two")
    if file is not None:
        click.echo(_of_file(file, rule, json=json), nl=False)
        return
    told = [name for name in rule if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    if told:
        raise UsageError(f"--{told[0]} goes with --csv; experiment directories say it themselves")
    # Here, so that --help waits for no scipy or matplotlib.
    from esper_ab.report.compared import compare, render_json, render_text

    compared = compare(folders)
    click.echo(render_json(compared) if json else render_text(compared))


def _of_file(file: Path, rule: dict[str, Any], *, json: bool) -> str:
    # Here, so that --help waits for no scipy.
    from esper_ab.external.csv_file import read_csv
    from esper_ab.external.explore import explore
    from esper_ab.external.plan import Rule
    from esper_ab.external.scales import scales_of, told_by_task

    margin = told_by_task(margin_of(rule["margin"]))
    endpoints = read_csv(file, columns_of(rule["columns"]))
    scales = scales_of(
        endpoints.tasks, margin, better=told_by_task(rule["better"]), unit=told_by_task(rule["unit"]),
        label=rule["label"], worst=told_by_task(rule["worst"]),
    )  # fmt: skip
    declared = Rule(control=rule["control"], alpha=rule["alpha"])
    found = explore(endpoints, scales, declared, paired=rule["paired"], rows=rule["rows"])
    return printed(found, scores=rule["scores"], figure=rule["figure"], json=json)
