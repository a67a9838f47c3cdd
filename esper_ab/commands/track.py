"""`esper-ab track`: send the records of an experiment directory to trackers, once or until the experiment ends."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import click
import msgspec

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._parameters import Flags, json_flag, switch, valued
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.journal.load import load
from esper_ab.trackers.beside import fill
from esper_ab.trackers.settings import NAMES, Tracking, check_tracking, wandb_mode, wanted
from esper_ab.trackers.state import at_work, read_settings, save_settings


@command_with(
    "esper-ab track experiments/EXPERIMENT --tensorboard",
    "esper-ab track experiments/EXPERIMENT --wandb offline",
)
@experiment_argument
@valued(
    "--wandb", "[offline|online]", "Weights & Biases. [default: WANDB_MODE, else online]", flag_value="", is_flag=False
)
@switch("--tensorboard", "TensorBoard: event files in EXPERIMENT/tensorboard.")
@valued("--wandb-entity", "NAME", "W&B team or user.")
@valued("--wandb-project", "NAME", "W&B project. [default: ab_test_NAME_DATE]")
@switch("--follow", "Keep sending records until the experiment ends.")
@json_flag
def command(experiment_dir: Path, follow: bool, json: bool, **options: Any) -> int:
    """Send the records of EXPERIMENT to Weights & Biases or TensorBoard.

    EXPERIMENT may be finished, running or stopped, and repeating the command adds nothing twice. If no tracker is
    named, the records go to the trackers that already follow EXPERIMENT. Trackers named here also follow EXPERIMENT
    when it is resumed or extended.
    """
    load(experiment_dir)  # raises for a damaged or missing journal
    settings_before = read_settings(experiment_dir)
    asked_settings = _change(settings_before, options)
    names = tuple(name for name in NAMES if options[name] not in (None, False)) or wanted(settings_before)
    if not names:
        raise UsageError(f"{experiment_dir} has no tracker yet; name one: --tensorboard or --wandb")
    check_tracking(asked_settings)
    for name in names:
        if at_work(experiment_dir, name):
            logs_command = f"`{shell_command('logs', experiment_dir, f'tracker-{name}')}`"
            raise UsageError(f"{experiment_dir}: {name} already follows this experiment; see {logs_command}")
    save_settings(experiment_dir, asked_settings)
    progress_by_tracker = fill(experiment_dir, names, live=follow)
    if json:
        keys = ("state", "where", "lines", "detail")
        trees = {name: {key: getattr(tracker, key) for key in keys} for name, tracker in progress_by_tracker.items()}
        click.echo(json_module.dumps(trees))
    for name, tracker in progress_by_tracker.items():
        if tracker.state == "failed":
            click.echo(typeable(f"warning: {visible_line(f'{name}: {tracker.detail}')}"), err=True)
        elif not json:
            click.echo(f"{name}: {counted(tracker.lines, 'line')} of the journal in {tracker.where}")
    if any(tracker.state == "failed" for tracker in progress_by_tracker.values()):
        return 1
    return 0


def _change(settings_before: Tracking, options: Flags) -> Tracking:
    """Return the settings `settings_before` with the flags applied; UsageError for W&B flags without --wandb."""
    wandb_flags = ("wandb_entity", "wandb_project")
    changed_fields: dict[str, Any] = {name: options[name] for name in wandb_flags if options[name] is not None}
    if options["wandb"] is not None:
        changed_fields["wandb"] = wandb_mode("--wandb", options["wandb"])
    if options["tensorboard"]:
        changed_fields["tensorboard"] = True
    asked_settings = msgspec.structs.replace(settings_before, **changed_fields)
    if asked_settings.wandb == "off" and (asked_settings.wandb_entity or asked_settings.wandb_project):
        raise UsageError("--wandb-entity and --wandb-project need --wandb")
    return asked_settings
