"""`esper-ab report`: rebuild the report of an experiment directory from its journal."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.campaign.answering import Form, parse_requirements, show_answer, write_answer
from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import joint_argument
from esper_ab.commands._parameters import json_flag, switch, valued


@command_with(
    "esper-ab report experiments/EXPERIMENT",
    "esper-ab report experiments/EXPERIMENT --format md",
    "esper-ab report experiments/EXPERIMENT --fail-unless 'simplified better-than shaped'",
)
@joint_argument
@json_flag
@valued(
    "--format",
    None,
    "Output format; md: Markdown for a pull request. [default: text]",
    "form",
    type=click.Choice(("text", "md", "json")),
)
@valued(
    "--fail-unless",
    "REQUIREMENT",
    "Exit with status 12 if the verdict does not support it, as in 'simplified better-than shaped'; also worse-than, "
    "equivalent-to and not-worse-than. Repeatable.",
    "requirements",
    multiple=True,
)
@switch("--quiet", "Print only the verdict.")
@switch("--verbose", "Also print every table of report.html.", "-v")
def command(
    experiment_dir: Path,
    json: bool,
    form: Form | None,
    requirements: tuple[str, ...],
    quiet: bool,
    verbose: bool,
) -> None:
    """Rebuild summary.txt, verdict.json and report.html of EXPERIMENT from its journal."""
    if json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude each other")
    chosen_form: Form = form or "text"
    if json:
        chosen_form = "json"
    elif form is None and quiet:
        chosen_form = "brief"
    elif form is None and verbose:
        chosen_form = "whole"
    answer = write_answer(experiment_dir, chosen_form)
    show_answer(answer, chosen_form, parse_requirements(requirements, answer.groups, answer.contrasts))
