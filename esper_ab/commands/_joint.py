"""Show the status of a joint experiment: several tasks, or a grid of settings."""

from __future__ import annotations

import json as json_module
from pathlib import Path

import click
import msgspec

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.shell_command import typeable
from esper_ab.journal.begun import begun
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, read_joint
from esper_ab.readers.reported import no_report
from esper_ab.readers.status import status, status_text


def status_joint(directory: Path, *, json: bool) -> None:
    """Print the progress of every part as text or, with `json`, as JSON."""
    found = read_joint(directory)
    plan = read_plan(directory / PLAN_NAME)
    if json:
        parts = [
            {"part": part.name, **(msgspec.to_builtins(status(folder)) if begun(folder) else {"state": "planned"})}
            for part in found.parts
            for folder in (directory / part.folder,)
        ]
        click.echo(json_module.dumps({"experiment": directory.name, "plan": plan.digest, "parts": parts}, indent=2))
        return
    folders = [directory / part.folder for part in found.parts]
    for part, folder in zip(found.parts, folders, strict=True):
        if begun(folder):
            click.echo(typeable(f"{part.name}\n{status_text(folder)}\n"))
        else:
            click.echo(f"{part.name}: planned\n")
    finished = all(begun(folder) and status(folder).state == "finished" for folder in folders)
    verdict = str(directory / PAGE) if finished else "available when all parts are finished"
    click.echo(typeable(f"verdict over all parts: {(finished and no_report(directory)) or verdict}"))
