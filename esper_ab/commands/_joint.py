"""Show the status of a joint experiment: several tasks, or a grid of settings."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import click
import msgspec

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.shell_command import typeable
from esper_ab.journal.begun import begun
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, read_joint
from esper_ab.readers.reported import no_report
from esper_ab.readers.status import status
from esper_ab.readers.status_text import status_text


def status_joint(directory: Path, *, json: bool) -> None:
    """Print the progress of every part as text or, with `json`, as JSON."""
    joint_experiment = read_joint(directory)
    plan = read_plan(directory / PLAN_NAME)
    if json:
        parts = [{"part": part.name, **_status_tree(directory / part.folder)} for part in joint_experiment.parts]
        digest = joint_experiment.digest(plan.digest)
        click.echo(json_module.dumps({"experiment": directory.name, "plan": digest, "parts": parts}, indent=2))
        return
    folders = [directory / part.folder for part in joint_experiment.parts]
    for part, folder in zip(joint_experiment.parts, folders, strict=True):
        if begun(folder):
            click.echo(typeable(f"{part.name}\n{status_text(folder)}\n"))
        else:
            click.echo(f"{part.name}: planned\n")
    if all(begun(folder) and status(folder).state == "finished" for folder in folders):
        verdict = no_report(directory) or str(directory / PAGE)
    else:
        verdict = "available when all parts are finished"
    click.echo(typeable(f"verdict over all parts: {verdict}"))


def _status_tree(folder: Path) -> dict[str, Any]:
    """Return the progress of one part, as in the JSON of `status`."""
    if not begun(folder):
        return {"state": "planned"}
    return dict(msgspec.to_builtins(status(folder)))
