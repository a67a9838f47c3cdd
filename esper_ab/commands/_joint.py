"""Show the status of a joint experiment: several tasks, or a grid of settings."""

from __future__ import annotations

import json as json_module
from pathlib import Path

import click
import msgspec

from esper_ab.contracts.experiment_files import PAGE
from esper_ab.journal.events import begun
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, read_joint
from esper_ab.readers.status import status, status_text


def status_joint(directory: Path, *, json: bool) -> None:
    """Print the progress of every part as text or, with `json`, as JSON."""
    found, plan = read_joint(directory), read_plan(directory / PLAN_NAME)
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
    click.echo(f"verdict over all parts: {page if page.is_file() else 'available when all parts are finished'}")
