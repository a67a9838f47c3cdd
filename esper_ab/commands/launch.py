"""`esper-ab launch`, also `python -m esper_ab.launch`: run an experiment and compare its groups."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import command_with, invoke, leaving
from esper_ab.commands._options import ExperimentCommand, experiment_options, help_all
from esper_ab.contracts.errors import WorkerFailed, WorkerHung
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_json


@command_with(
    "esper-ab launch --groups shaped,simplified,wait --seeds 10",
    "esper-ab launch --groups shaped --group fast:ppo.lr=3e-3 --dry-run",
    "esper-ab launch experiment.toml --seeds 12",
    "esper-ab launch experiment.py --output-dir results --max-parallel 4 --dry-run",
    "esper-ab launch --seeds auto --max 20 --devices cuda:0 cuda:1",
    cls=ExperimentCommand,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@experiment_options()
@help_all
def command(**options: Any) -> None:
    """Train one policy per group and seed on paired randomness, and compare the groups.

    The groups of a seed train at the same time. WHAT is an experiment file, a trainer (.py) or a command. An experiment
    file is TOML with the settings of these flags (docs/cli.md), or Python that defines create_NAME_experiment(),
    get_experiment() or experiment (docs/python.md). Flags override the file.
    """
    # Imported here, so that --help is fast.
    from esper_ab.commands._asking import read_job
    from esper_ab.commands._launch_flags import typed_flags
    from esper_ab.control.rules.limits import Limits
    from esper_ab.execution.answer import show_answer
    from esper_ab.execution.job import carry_out, confirm, describe, encode, make_directory, plan_job
    from esper_ab.execution.launching import make_launcher
    from esper_ab.live.console import outlive_terminal
    from esper_ab.live.on_stderr import Narration
    from esper_ab.verdict.requirement import parse_requirement

    flags = typed_flags(options)
    fallback = None if flags.dry_run else outlive_terminal()
    asked = read_job(flags)
    if fallback is not None:
        atexit.register(fallback.leave, asked.output_dir)  # of a launch that was refused, and so has no directory
    job = plan_job(asked, make_launcher(asked.launcher), only_plan=flags.dry_run)
    for text in flags.fail_unless:
        parse_requirement(text, job.groups, job.comparisons)
    if not flags.json:
        click.echo(typeable(describe(job, whole=flags.verbose)))
        if flags.dry_run:
            click.echo("Nothing was started.")
    elif flags.dry_run:
        click.echo(visible_json(encode(job)))
    confirm(job, yes=flags.yes, dry_run=flags.dry_run)
    if fallback is None:
        return
    job = make_directory(job)
    fallback.use(job.directory)
    try:
        carry_out(
            job,
            watched=not (flags.quiet or flags.json or flags.verbose),
            limits=Limits(deaths=1) if flags.no_retry else None,
            also=[Narration()] if flags.verbose else (),
            begin=str if flags.json else click.echo,
        )
    except (WorkerFailed, WorkerHung):
        if job.joint is None and not flags.json:
            click.echo(typeable("\n".join(_failures(job.directory))))
        raise
    show_answer(job.directory, flags.fail_unless, "json" if flags.json else "brief")


def _failures(directory: Path) -> Iterator[str]:
    """Rebuild the report; yield its brief text, then the lines on the failed runs."""
    from esper_ab.api.results import Results  # as above
    from esper_ab.execution.answer import write_report
    from esper_ab.report.build import printed

    paths = write_report(directory)
    yield printed(paths, "brief")
    yield from Results(directory, paths.content, "").failure_lines


def main() -> int:
    """Run `python -m esper_ab.launch` and return its exit status."""
    return leaving(invoke(command, sys.argv[1:], "python -m esper_ab.launch"))
