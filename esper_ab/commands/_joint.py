"""What `launch`, `resume`, `report` and `status` do for a joint experiment: several tasks, or a grid of settings."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.errors import UsageError
from esper_ab.execution import experiment as execution
from esper_ab.execution import joint
from esper_ab.execution.affordable import confirm
from esper_ab.execution.answer import parse_requirements, show_answer
from esper_ab.execution.detach import FOR_SEVERAL
from esper_ab.joint.directory import read_joint
from esper_ab.journal.begun import begun
from esper_ab.live.console import outlive_terminal
from esper_ab.live.status import status, status_text
from esper_ab.settings.parts import Parts

if TYPE_CHECKING:
    from esper_ab.launchers import Launcher
    from esper_ab.trackers.settings import Tracking

# Flags of `launch` that are about one experiment, and what to do in their place.
_OF_ONE = {
    "detach": FOR_SEVERAL,
    "calibration": "it is of one task",
    "reward_audit": "it is of one task",
}


def refuse_of_one(options: dict[str, Any], parts: int) -> None:
    """UsageError for a flag of `launch` that a question over several parts has no place for."""
    for flag, why in _OF_ONE.items():
        if options[flag] not in (None, False):
            raise UsageError(f"--{flag}: {why}; leave it out of a question over {parts} parts")


def launch_joint(asked: Parts, launcher: Launcher, options: dict[str, Any], tracking: Tracking) -> None:
    """Plan all parts, carry them out one after the other, and answer over them."""
    refuse_of_one(options, len(asked.parts))
    planned = joint.plan_joint(asked, options["out"], launcher, only_plan=options["dry_run"])
    parse_requirements(options["fail_unless"], planned.plan.groups, planned.plan.design.comparisons)
    if not options["json"]:
        click.echo("\n\n".join((joint.describe(planned), *map(execution.format_plan, planned.parts))))
    elif options["dry_run"]:
        parts = [json_module.loads(execution.encode_plan(part)) for part in planned.parts]
        told = {"experiment_dir": str(planned.directory), "sha256": planned.plan.digest, "parts": parts}
        click.echo(json_module.dumps(told))
    confirm(*planned.parts, yes=options["yes"], dry_run=options["dry_run"])
    if options["dry_run"]:
        return
    outlive_terminal(planned.directory)
    joint.carry_out_joint(
        planned, launcher, watched=not (options["quiet"] or options["json"]), tracking=tracking,
        begin=_silent if options["json"] else click.echo,
    )  # fmt: skip
    show_answer(planned.directory, options["fail_unless"], "json" if options["json"] else "brief")


def status_joint(directory: Path, *, json: bool) -> None:
    """Show how far every part is."""
    found, plan = read_joint(directory)
    if json:
        parts = [
            {"part": part.name, **(msgspec.to_builtins(status(folder)) if begun(folder) else {"state": "planned"})}
            for part in found.parts for folder in (directory / part.folder,)
        ]  # fmt: skip
        click.echo(json_module.dumps({"experiment": directory.name, "plan": plan.digest, "parts": parts}, indent=2))
        return
    for part in found.parts:
        if begun(directory / part.folder):
            click.echo(f"{part.name}\n{status_text(directory / part.folder)}\n")
        else:
            click.echo(f"{part.name}: planned\n")
    page = directory / PAGE
    click.echo(f"answer over all parts: {page if page.is_file() else 'when all of them are done'}")


def _silent(name: str) -> None:
    """Say nothing about a part that begins: stdout is JSON alone."""
