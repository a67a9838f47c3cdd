"""`esper-ab report`: the report of a run directory, rebuilt from its journal."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.commands._completing import RunDirectory
from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import shared_options
from esper_ab.execution.experiment import write_report
from esper_ab.report.build import printed
from esper_ab.verdict.condition import parse_condition, require


@click.command(epilog=epilog(
    "esper-ab report runs/RUN",
    "esper-ab report runs/RUN --format md",
    "esper-ab report runs/RUN --fail-unless 'simplified better-than shaped'",
))  # fmt: skip
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@shared_options("json")
@click.option("--format", "form", type=click.Choice(("text", "md", "json")),
              help="What is printed; md: Markdown for a pull request. [default: text]")
@click.option("--fail-unless", "conditions", multiple=True, metavar="CONDITION",
              help="Exit status 12 unless the verdict supports it, as in 'simplified better-than shaped'; also "
              "worse-than, equivalent-to, not-worse-than. Can be repeated.")
def command(run_dir: Path, json: bool, form: str | None, conditions: tuple[str, ...]) -> None:
    """Rebuild summary.txt, verdict.json and report.html of RUN from its journal."""
    if json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude each other")
    paths = write_report(run_dir)
    history = paths.content.history
    asked = [parse_condition(text, history.groups, history.design.comparisons) for text in conditions]
    click.echo(printed(paths, "json" if json else form or "text"))
    require(asked, paths.content.comparisons)
