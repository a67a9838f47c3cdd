"""`esper-ab judge`: endpoints of runs made elsewhere, held to the plan of `esper-ab design`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._external import columns_of, external_options, printed


@click.command(epilog=epilog(
    "esper-ab judge plan.json results.csv", "esper-ab judge plan.json results.csv --fail-unless 'new better-than old'",
))
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@external_options("scores", "columns", "figure")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
@click.option("--fail-unless", "requirements", multiple=True, metavar="REQUIREMENT",
              help="Exit status 12 unless the verdict supports it, as in 'new better-than old'; of several tasks the "
              "verdict on their mean. Can be repeated.")
def command(
    plan_file: Path, file: Path, columns: str, json: bool, requirements: tuple[str, ...], **shown: Any
) -> None:
    """Hold the endpoints in FILE, of runs made elsewhere, to PLAN, and say what was not followed.

    FILE is a CSV file whose header has group, seed (or pair), endpoint and, where the plan has tasks, task; a row per
    run, and an empty endpoint for a run that failed. A look is taken as soon as all runs that it asks for are there.
    """
    # Here, so that --help and completion wait for no scipy.
    from esper_ab.external.csv_file import read_csv
    from esper_ab.external.judge import judge
    from esper_ab.external.plan import read_plan
    from esper_ab.verdict.requirement import parse_requirement, require

    plan = read_plan(plan_file)
    asked = [parse_requirement(text, plan.groups, plan.design.comparisons) for text in requirements]
    found = judge(plan, read_csv(file, columns_of(columns)))
    click.echo(printed(found, json=json, **shown), nl=False)
    last = found.comparisons[-1].task
    require(asked, [one.comparison for one in found.comparisons if one.task == last])
