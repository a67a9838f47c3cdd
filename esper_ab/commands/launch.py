"""`esper-ab launch`, also `python -m esper_ab.launch`: run an experiment and compare its groups."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import command_with, invoke, leaving
from esper_ab.commands._options import ExperimentCommand, experiment_options, help_all
from esper_ab.contracts.errors import WorkerFailed, WorkerHung
from esper_ab.contracts.shell_command import typeable

if TYPE_CHECKING:
    from esper_ab.campaign.answering import Form
    from esper_ab.campaign.running import RunOptions
    from esper_ab.commands._launch_flags import LaunchFlags


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

    The groups of a seed train at the same time. WHAT is an experiment file, a trainer (.py), a function
    (train.py:train) or a command. An experiment file is TOML with the settings of these flags, as written by
    `esper-ab init`, or Python that defines create_NAME_experiment(), get_experiment() or experiment. Flags override the
    file.
    """
    # Imported here, so that --help is fast.
    from esper_ab.campaign.answering import parse_requirements, show_answer, write_answer
    from esper_ab.campaign.confirming import confirm
    from esper_ab.campaign.directory import claim
    from esper_ab.campaign.launcher import make_launcher
    from esper_ab.campaign.planning import plan_campaign
    from esper_ab.campaign.running import run
    from esper_ab.commands._launch_flags import typed_flags
    from esper_ab.commands._plan_output import print_plan
    from esper_ab.commands._requested_campaign import check_holds_if, read_campaign
    from esper_ab.live.console import outlive_terminal

    flags = typed_flags(options)
    fallback = None if flags.dry_run else outlive_terminal()
    campaign = read_campaign(flags)
    if fallback is not None:
        atexit.register(fallback.leave, campaign.output_dir)  # of a launch that was refused, and so has no directory
    plan = plan_campaign(campaign, make_launcher(campaign.launcher), only_plan=flags.dry_run)
    has_guardrails = bool(plan.parts[0].plan.experiment.guardrails)
    requirements = parse_requirements(flags.fail_unless, plan.groups, plan.comparisons, has_guardrails=has_guardrails)
    check_holds_if(plan)
    print_plan(plan, json=flags.json, in_full=flags.verbose, dry_run=flags.dry_run)
    confirm(plan, yes=flags.yes, dry_run=flags.dry_run)
    if fallback is None:
        return
    with claim(plan) as claimed_plan:
        fallback.use(claimed_plan.directory)
        try:
            run(claimed_plan, _run_options(flags))
        except (WorkerFailed, WorkerHung):
            if claimed_plan.over_all is None and not flags.json:
                click.echo(typeable("\n".join(_failures(claimed_plan.directory))))
            raise
    form: Form = "json" if flags.json else "brief"
    show_answer(write_answer(claimed_plan.directory, form), form, requirements)


def _run_options(flags: LaunchFlags) -> RunOptions:
    """Return how the flags want the campaign to be carried out and watched."""
    from esper_ab.campaign.running import RunOptions  # as above
    from esper_ab.control.rules.limits import Limits
    from esper_ab.live.on_stderr import Narration

    options = RunOptions(watched=not (flags.quiet or flags.json or flags.verbose), begin=click.echo)
    if flags.no_retry:
        options = replace(options, limits=Limits(deaths=1))
    if flags.verbose:
        options = replace(options, observers=[Narration()])
    if flags.json:
        options = replace(options, begin=str)
    return options


def _failures(directory: Path) -> Iterator[str]:
    """Rebuild the report; yield its brief text, then the lines on the failed runs."""
    from esper_ab.api.results import Results  # as above
    from esper_ab.campaign.answering import write_report
    from esper_ab.report.build import printed

    paths = write_report(directory)
    yield printed(paths, "brief")
    yield from Results(directory, paths.content, "").failure_lines


def main() -> int:
    """Run `python -m esper_ab.launch` and return its exit status."""
    return leaving(invoke(command, sys.argv[1:], "python -m esper_ab.launch"))
