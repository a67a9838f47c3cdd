"""`esper-ab resume`: continue an experiment from its journal and checkpoints, or add seeds to it."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from esper_ab.campaign.answering import Form, show_answer, write_answer
from esper_ab.campaign.launcher import make_launcher
from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import joint_argument
from esper_ab.commands._launcher_flags import read_launcher_flags
from esper_ab.commands._options import LAUNCHER_FLAGS, shared_options
from esper_ab.commands._parameters import AT_LEAST_1, switch, valued
from esper_ab.contracts.shell_command import typeable
from esper_ab.live.console import outlive_terminal


@command_with(
    "esper-ab resume experiments/EXPERIMENT",
    "esper-ab resume experiments/EXPERIMENT --seeds 20 --dry-run",
)
@joint_argument
@valued(
    "--seeds",
    "N",
    "Add seeds to a finished EXPERIMENT, up to N in total. Comparisons that are still undecided then follow the "
    "stricter rule of an extended plan.",
    type=AT_LEAST_1,
)
@switch("--dry-run", "With --seeds: print the seeds that would be added and the rule that would apply, then exit.")
@shared_options(*LAUNCHER_FLAGS, "quiet", "json")
@valued(
    "--fail-unless",
    "REQUIREMENT",
    "Exit with status 12 if the verdict does not support it, as in 'simplified better-than shaped'. Repeatable.",
    "requirements",
    multiple=True,
)
@switch(
    "--allow-changed-code",
    "Continue although the code has changed since the first records; the verdict is then BLOCKED.",
)
def command(experiment_dir: Path, seeds: int | None, requirements: tuple[str, ...], **options: Any) -> None:
    """Continue EXPERIMENT after it was stopped or interrupted, or add seeds to it.

    The experiment continues from its journal and checkpoints; at the end the verdict is printed, as by `launch`.
    """
    # Imported here, so that --help needs no numpy, scipy or zmq.
    from esper_ab.campaign.resuming import check_resumable, resume
    from esper_ab.campaign.running import RunOptions

    json = options["json"]
    allows_changes = options["allow_changed_code"]
    if options["dry_run"] and seeds is None:
        raise click.UsageError("--dry-run needs --seeds")
    resumption = check_resumable(experiment_dir, seeds, requirements, allow_changed_code=allows_changes)
    if resumption.added is not None and not json:
        click.echo(typeable(str(resumption.added)))
    elif resumption.added is not None and options["dry_run"]:
        click.echo(json_module.dumps(asdict(resumption.added)))
    if options["dry_run"]:
        return
    outlive_terminal(experiment_dir)
    run_options = RunOptions(watched=not (options["quiet"] or json), begin=str if json else click.echo)
    launcher = make_launcher(read_launcher_flags(options))
    resume(experiment_dir, launcher, run_options, replicates=seeds, allow_changed_code=allows_changes)
    form: Form = "json" if json else "brief"
    show_answer(write_answer(experiment_dir, form), form, resumption.requirements)
