"""FILE and the flags of a command that trains -> the job that is asked for. Flags win."""

from __future__ import annotations

from pathlib import Path

import click

from esper_ab.api.declared import DeclaredExperiment
from esper_ab.commands._parameters import Flags
from esper_ab.contracts.errors import UsageError
from esper_ab.execution.detach import FOR_SEVERAL
from esper_ab.execution.experiment import Beforehand
from esper_ab.execution.job import AskedJob, one_part
from esper_ab.execution.launching import read_launcher_flags
from esper_ab.execution.reward_audit import load_reward_audit
from esper_ab.settings.assignments import split_commas
from esper_ab.settings.parse import parse
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.request import read_request, read_toml
from esper_ab.trackers.settings import NAMES, Tracking, check_tracking, wandb_mode

# Flags of `launch` that are about one experiment, and what to do in their place.
_OF_ONE = {"detach": FOR_SEVERAL, "calibration": "it is of one task", "reward_audit": "it is of one task"}
_TRACKING = ("track", "wandb_mode", "wandb_entity", "wandb_project")


def read_file(path: Path) -> DeclaredExperiment:
    """Read what FILE declares; UsageError, one line with its place."""
    if path.suffix == ".toml":
        return DeclaredExperiment(file=read_toml(path))
    if path.suffix != ".py":
        raise UsageError(f"{path}: a Python file (.py) or a TOML file (.toml) is expected")
    from esper_ab.api.files import load_declaration  # it runs code of the user's, which has this process end slowly

    return load_declaration(path)


def read_job(options: Flags) -> AskedJob:
    """Read FILE and flags, as click has them; UsageError for anything that the machine need not be asked for."""
    if not options["parallel"]:
        if (options["max_parallel"] or 1) > 1:
            raise click.UsageError("--no-parallel is one run at a time; leave it or --max-parallel out")
        options = options | {"max_parallel": 1}
    declared = read_file(options["file"]) if options["file"] else DeclaredExperiment()
    request = read_request(options, declared.file)
    parts = parse_parts(request) or one_part(parse(request))
    if len(parts.parts) > 1:
        for flag, why in _OF_ONE.items():
            if options[flag] not in (None, False):
                raise UsageError(f"--{flag}: {why}; leave it out of a question over {len(parts.parts)} parts")
    tracking = declared.tracking
    if any(options[flag] is not None for flag in _TRACKING):
        tracking = tracking_of(options, tracking)
    elif tracking != Tracking():
        check_tracking(tracking)
    calibration = reward_audit = None
    if options["calibration"] is not None:
        from esper_ab.design.calibration_file import load_calibration  # with scipy: a launch without it is fast

        calibration = load_calibration(options["calibration"])
    if options["reward_audit"] is not None:
        reward_audit = load_reward_audit(options["reward_audit"])
    return AskedJob(
        parts=parts, output_dir=options["output_dir"], about=declared.about, tracking=tracking,
        launcher=read_launcher_flags(options).over(request.launcher),
        known=Beforehand(calibration=calibration, reward_audit=reward_audit),
    )


def tracking_of(options: Flags, declared: Tracking) -> Tracking:
    """The trackers that flags ask for, or else FILE; UsageError, before anything starts, for what cannot be used."""
    names = split_commas(options["track"], "--track") if options["track"] is not None else []
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise UsageError(f"--track {unknown[0]}: no such tracker; there are {', '.join(NAMES)}")
    for flag in _TRACKING[1:]:
        if options[flag] is not None and "wandb" not in names:
            raise UsageError(f"--{flag.replace('_', '-')} goes with --track wandb")
    told = Tracking(
        wandb=wandb_mode("--wandb-mode", options["wandb_mode"]) if "wandb" in names else "off",
        wandb_entity=options["wandb_entity"] or "", wandb_project=options["wandb_project"] or "",
        tensorboard="tensorboard" in names, description=declared.description, tags=declared.tags,
    )  # fmt: skip
    check_tracking(told)
    return told
