"""Turn WHAT and the flags of a command that trains into the requested campaign; flags take precedence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from esper_ab.api.requested import DeclaredExperiment
from esper_ab.campaign.campaign import Campaign, CampaignPlan, PriorResults
from esper_ab.campaign.reward_audit import load_reward_audit
from esper_ab.commands._launch_flags import LaunchFlags
from esper_ab.commands._launcher_flags import read_launcher_flags
from esper_ab.commands._options import ARGUMENTS
from esper_ab.contracts.errors import Missing, UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.settings.assignments import split_commas
from esper_ab.settings.claim_table import remarks_on
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.references import read_references
from esper_ab.settings.request import Request, read_request
from esper_ab.settings.settings_file import read_toml
from esper_ab.trackers.settings import NAMES, Tracking, check_tracking, wandb_mode

_REFERENCES = ("--references", "--references-limit")


def read_what(flags: LaunchFlags) -> tuple[DeclaredExperiment, Request]:
    """Read WHAT (an experiment file, trainer, function or command) and the flags; UsageError if one is invalid."""
    target = flags.what
    declaration = DeclaredExperiment()
    trainer: str | None = None
    if target is None:
        return declaration, read_request(flags.by_name)
    path = Path(target)
    if path.suffix == ".toml" and (path.exists() or " " not in target):
        file = read_toml(path)
        declaration = DeclaredExperiment(file=file, about=remarks_on(file.claim))
    else:
        # Imported here, because the API is needed for Python files only.
        from esper_ab.api.what import trainer_in

        trainer = trainer_in(target)
        if trainer is None:
            from esper_ab.api.files import load_declaration  # as above

            declaration = load_declaration(path)
    return declaration, read_request({**flags.by_name, "trainer": trainer}, declaration.file)


@contextmanager
def completed(command: str) -> Iterator[None]:
    """Turn Missing into one UsageError that lists the missing decisions and shows the command with their flags."""
    try:
        yield
    except Missing as error:
        flags = [flag for _, _, flag in error.missing]
        wanted_words = []
        for _, decision, flag in error.missing:
            alternatives = flag.replace("--higher NAME", "--higher NAME or --lower NAME")
            wanted_words.append(f"{alternatives} ({decision})")
        typed_words = click.get_current_context().meta.get(ARGUMENTS, ())
        line = " ".join((shell_command(command, *typed_words), *flags))
        raise UsageError(f"missing: {'; '.join(wanted_words)}. Complete the command: {line}") from None


def read_campaign(flags: LaunchFlags) -> Campaign:
    """Return the campaign requested by WHAT and the flags.

    Raises UsageError for every error that can be found without the preflight.
    """
    if not flags.parallel:
        if (flags.max_parallel or 1) > 1:
            raise click.UsageError("--no-parallel runs one run at a time; remove --no-parallel or --max-parallel")
        flags = msgspec.structs.replace(flags, max_parallel=1)
    declaration, request = read_what(flags)
    with completed("launch"):
        parts = parse_parts(request)
    if len(parts) > 1:
        _refuse_files_of_one_task(flags, len(parts))
    return Campaign(
        parts=parts,
        scores=request.scores,
        grid=request.grid,
        output_dir=flags.output_dir,
        about=declaration.about,
        tracking=_checked_tracking(flags, declaration.tracking),
        prior=_prior_results(flags),
        launcher=read_launcher_flags(flags.by_name).over(request.launcher),
        references=read_references(flags.references, flags.references_limit, _REFERENCES),
    )


def check_holds_if(plan: CampaignPlan) -> None:
    """Raise UsageError if the claim of a plan holds on a condition that its answer cannot meet."""
    condition = plan.campaign.about.get("claim", {}).get("holds_if")
    if condition is None:
        return
    from esper_ab.verdict.requirement import parse_requirement  # for claims only

    has_guardrails = bool(plan.parts[0].plan.experiment.guardrails)
    origin = "[claim] holds_if"
    parse_requirement(condition, plan.groups, plan.comparisons, has_guardrails=has_guardrails, origin=origin)


def _refuse_files_of_one_task(flags: LaunchFlags, parts: int) -> None:
    """Raise UsageError for a calibration or a reward audit, because this question has several parts."""
    for flag, file in (("--calibration", flags.calibration), ("--reward-audit", flags.reward_audit)):
        if file is not None:
            raise UsageError(f"{flag}: it covers one task; remove it, because this question has {parts} parts")


def _prior_results(flags: LaunchFlags) -> PriorResults:
    """Load the files of --calibration and --reward-audit, if given, and the plan of an experiment launched again."""
    calibration = None
    reward_audit = None
    if flags.calibration is not None:
        from esper_ab.design.calibration_file import load_calibration  # needs scipy, which is slow to import

        calibration = load_calibration(flags.calibration)
    if flags.reward_audit is not None:
        reward_audit = load_reward_audit(flags.reward_audit)
    original = None
    original_parts = None
    if flags.what is not None and Path(flags.what).suffix == ".toml":
        from esper_ab.campaign.replicated import parts_beside, plan_beside  # read journals, which --help does not

        original = plan_beside(Path(flags.what))
        original_parts = parts_beside(Path(flags.what))
    return PriorResults(
        calibration=calibration, reward_audit=reward_audit, original=original, original_parts=original_parts
    )


def _checked_tracking(flags: LaunchFlags, declared_tracking: Tracking) -> Tracking:
    """Return the tracking settings from WHAT and the flags; UsageError if a tracker cannot be used."""
    if (flags.track, flags.wandb_mode, flags.wandb_entity, flags.wandb_project) != (None, None, None, None):
        return tracking_of(flags, declared_tracking)
    if declared_tracking != Tracking():
        check_tracking(declared_tracking)
    return declared_tracking


def _tracked(declared_tracking: Tracking) -> list[str]:
    """Return the names of the trackers that WHAT asks for."""
    names = []
    if declared_tracking.wandb != "off":
        names.append("wandb")
    if declared_tracking.tensorboard:
        names.append("tensorboard")
    return names


def tracking_of(flags: LaunchFlags, declared_tracking: Tracking) -> Tracking:
    """Return the tracking settings from the flags, over those of WHAT; --track replaces the trackers of WHAT.

    Raises UsageError if a tracker is unknown or cannot be used.
    """
    if flags.track is not None:
        names = split_commas(flags.track, "--track")
        kept_tracking = Tracking(description=declared_tracking.description, tags=declared_tracking.tags)
    else:
        names = _tracked(declared_tracking)
        kept_tracking = declared_tracking
    unknown_names = [name for name in names if name not in NAMES]
    if unknown_names:
        raise UsageError(f"--track {unknown_names[0]}: no such tracker; choose from {', '.join(NAMES)}")
    wandb_values = {
        "--wandb-mode": flags.wandb_mode,
        "--wandb-entity": flags.wandb_entity,
        "--wandb-project": flags.wandb_project,
    }
    for flag, value in wandb_values.items():
        if value is not None and "wandb" not in names:
            raise UsageError(f"{flag} needs --track wandb")
    mode = kept_tracking.wandb
    if "wandb" in names and (flags.wandb_mode is not None or mode == "off"):
        mode = wandb_mode("--wandb-mode", flags.wandb_mode)
    tracking = msgspec.structs.replace(
        kept_tracking,
        wandb=mode,
        tensorboard="tensorboard" in names,
        wandb_entity=flags.wandb_entity or kept_tracking.wandb_entity,
        wandb_project=flags.wandb_project or kept_tracking.wandb_project,
    )
    check_tracking(tracking)
    return tracking
