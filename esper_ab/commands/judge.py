"""`esper-ab judge`: outcomes of runs made elsewhere, held to the plan of `esper-ab design`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._external import columns_of, external_options, printed
from esper_ab.commands._options import PATH, shared_options
from esper_ab.contracts.errors import UsageError
from esper_ab.joint.directory import refuse_joint


@click.command(epilog=epilog(
    "esper-ab judge plan.json results.csv", "esper-ab judge plan.json digits=experiments/ONE mixture=experiments/OTHER",
    "esper-ab judge plan.json results.csv --fail-unless 'new better-than old'",
))
@click.argument("plan_file", metavar="PLAN", type=PATH)
@click.argument("files", metavar="FILE|[TASK=]EXPERIMENT…", nargs=-1, required=True)
@external_options("scores", "columns", "figure")
@shared_options("json")
@click.option("--fail-unless", "requirements", multiple=True, metavar="REQUIREMENT",
              help="Exit status 12 unless the verdict supports it, as in 'new better-than old'; of several tasks the "
              "verdict on their mean. Can be repeated.")
def command(
    plan_file: Path, files: tuple[str, ...], columns: str, json: bool, requirements: tuple[str, ...], **shown: Any
) -> None:
    """Hold outcomes of runs made elsewhere to PLAN, and say what was not followed.

    FILE is a CSV file whose header has group, seed (or pair), outcome and, where the plan has tasks, task; a row per
    run, and an empty outcome for a run that failed. In its place there may be an experiment directory, or one per
    task. A look is taken as soon as all runs that it asks for are there.
    """
    # Here, so that --help waits for no scipy.
    from esper_ab.external.csv_file import read_csv
    from esper_ab.external.plan import read_plan
    from esper_ab.joint.parts import read_experiments
    from esper_ab.verdict.judge import judge
    from esper_ab.verdict.requirement import parse_requirement, require

    plan = read_plan(plan_file)
    asked = [parse_requirement(text, plan.groups, plan.design.comparisons) for text in requirements]
    named = [_named(text) for text in files]
    if len(named) == 1 and not named[0][1].is_dir():
        observations = read_csv(named[0][1], columns_of(columns))
    elif columns:
        raise UsageError("--columns goes with one CSV file; experiment directories have no columns")
    else:
        for _, folder in named:
            refuse_joint(folder, "judge", by_task=True)
        observations = read_experiments(named, plan.scales)
    found = judge(plan, observations)
    click.echo(printed(found, json=json, **shown), nl=False)
    last = found.comparisons[-1].question.task
    require(asked, [one for one in found.comparisons if one.question.task == last])


def _named(text: str) -> tuple[str, Path]:
    """Task and path of TASK=PATH, of which each may have an "=" of its own; what exists as it stands has no task."""
    found = [(text[:place], Path(text[place + 1 :])) for place, char in enumerate(text) if char == "="]
    if not found or Path(text).exists():
        return "", Path(text)
    return next((one for one in found if one[1].exists()), found[0])
