"""Turn WHAT and the flags of a command that trains into the requested job; flags take precedence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from esper_ab.api.requested import DeclaredExperiment
from esper_ab.commands._options import ARGUMENTS
from esper_ab.commands._parameters import Flags
from esper_ab.contracts.errors import Missing, UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.execution.experiment import Beforehand
from esper_ab.execution.job import AskedJob, one_part
from esper_ab.execution.launching import read_launcher_flags
from esper_ab.execution.reward_audit import load_reward_audit
from esper_ab.settings.assignments import split_commas
from esper_ab.settings.parse import parse
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.request import Request, read_request, read_toml
from esper_ab.trackers.settings import NAMES, Tracking, check_tracking, wandb_mode

# Flags of `launch` that apply to a single experiment only, with the reason.
_OF_ONE = {"calibration": "it covers one task", "reward_audit": "it covers one task"}
_TRACKING = ("track", "wandb_mode", "wandb_entity", "wandb_project")


def read_what(options: Flags) -> tuple[DeclaredExperiment, Request]:
    """Read WHAT (an experiment file, a Python trainer or a command) and the flags; UsageError if either is invalid."""
    what = options["what"]
    declared = DeclaredExperiment()
    if what is None:
        return declared, read_request(options)
    path = Path(what)
    if path.suffix == ".toml" and (path.exists() or " " not in what):
        declared = DeclaredExperiment(file=read_toml(path))
    elif path.suffix == ".py" and (path.exists() or not {" ", "{"} & {*what}):
        from esper_ab.api.files import defines_trainer, load_declaration  # load_declaration runs the user's code

        if defines_trainer(path):
            options = options | {"trainer": what}
        else:
            declared = load_declaration(path)
    elif "{" in what:
        options = options | {"trainer": what}
    elif " " in what:
        raise UsageError(
            f"{what}: no such file; if this is a command, put {{seed}} where the script expects its seed, "
            "as in --seed {seed}"
        )
    else:
        raise UsageError(
            f"{what}: expected an experiment (.toml, .py), a Python file with train(run), or a command in quotes with "
            "placeholders, as in 'python train.py --lr {lr} --seed {seed} --out {out}'"
        )
    return declared, read_request(options, declared.file)


@contextmanager
def completed(command: str) -> Iterator[None]:
    """Turn Missing into one UsageError that lists the missing decisions and shows the command with their flags."""
    try:
        yield
    except Missing as error:
        shown = (flag.replace("--higher NAME", "--higher NAME or --lower NAME") for _, _, flag in error.missing)
        wanted = "; ".join(f"{flag} ({decides})" for flag, (_, decides, _) in zip(shown, error.missing, strict=True))
        typed = click.get_current_context().meta.get(ARGUMENTS, ())
        line = " ".join((shell_command(command, *typed), *(flag for _, _, flag in error.missing)))
        raise UsageError(f"missing: {wanted}. Complete the command: {line}") from None


def read_job(options: Flags) -> AskedJob:
    """Return the job requested by WHAT and the flags, which click has parsed.

    Raises UsageError for every error that can be found without the preflight.
    """
    if not options["parallel"]:
        if (options["max_parallel"] or 1) > 1:
            raise click.UsageError("--no-parallel runs one run at a time; remove --no-parallel or --max-parallel")
        options = options | {"max_parallel": 1}
    declared, request = read_what(options)
    with completed("launch"):
        parts = parse_parts(request) or one_part(parse(request))
    if len(parts.parts) > 1:
        for flag, why in _OF_ONE.items():
            if options[flag] not in (None, False):
                said = flag.replace("_", "-")
                raise UsageError(f"--{said}: {why}; remove it, because this question has {len(parts.parts)} parts")
    tracking = declared.tracking
    if any(options[flag] is not None for flag in _TRACKING):
        tracking = tracking_of(options, tracking)
    elif tracking != Tracking():
        check_tracking(tracking)
    calibration = reward_audit = None
    if options["calibration"] is not None:
        from esper_ab.design.calibration_file import load_calibration  # needs scipy, which is slow to import

        calibration = load_calibration(options["calibration"])
    if options["reward_audit"] is not None:
        reward_audit = load_reward_audit(options["reward_audit"])
    return AskedJob(
        parts=parts,
        output_dir=options["output_dir"],
        about=declared.about,
        tracking=tracking,
        launcher=read_launcher_flags(options).over(request.launcher),
        known=Beforehand(calibration=calibration, reward_audit=reward_audit),
    )


def _tracked(declared: Tracking) -> list[str]:
    """Return the names of the trackers that WHAT asks for."""
    return [name for name, on in (("wandb", declared.wandb != "off"), ("tensorboard", declared.tensorboard)) if on]


def tracking_of(options: Flags, declared: Tracking) -> Tracking:
    """Return the tracking settings from the flags, over those of WHAT; --track replaces the trackers of WHAT.

    Raises UsageError if a tracker is unknown or cannot be used.
    """
    if options["track"] is not None:
        names = split_commas(options["track"], "--track")
    else:
        names = _tracked(declared)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise UsageError(f"--track {unknown[0]}: no such tracker; choose from {', '.join(NAMES)}")
    for flag in _TRACKING[1:]:
        if options[flag] is not None and "wandb" not in names:
            raise UsageError(f"--{flag.replace('_', '-')} needs --track wandb")
    kept = declared
    if options["track"] is not None:
        kept = Tracking(description=declared.description, tags=declared.tags)
    mode = kept.wandb
    if "wandb" in names and (options["wandb_mode"] is not None or mode == "off"):
        mode = wandb_mode("--wandb-mode", options["wandb_mode"])
    told = msgspec.structs.replace(
        kept,
        wandb=mode,
        tensorboard="tensorboard" in names,
        wandb_entity=options["wandb_entity"] or kept.wandb_entity,
        wandb_project=options["wandb_project"] or kept.wandb_project,
    )
    check_tracking(told)
    return told
