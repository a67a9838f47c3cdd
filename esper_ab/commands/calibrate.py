"""`esper-ab calibrate`: compare a group with itself (A/A), to measure how much runs differ by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.launcher import make_launcher
from esper_ab.campaign.planning import plan_campaign
from esper_ab.commands._exit_status import command_with
from esper_ab.commands._launch_flags import LaunchFlags, typed_flags
from esper_ab.commands._launcher_flags import read_launcher_flags
from esper_ab.commands._options import ARGUMENTS, ExperimentCommand, experiment_options
from esper_ab.commands._parameters import MOST_SEEDS, valued
from esper_ab.commands._plan_output import print_plan
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.design.design import LEAST_RUNS
from esper_ab.settings.outcome_range import read_range
from esper_ab.settings.parse import kind_of_request, parse
from esper_ab.settings.parts import Part
from esper_ab.settings.request import Request

_OWN = (
    "groups",
    "group",
    "seeds",
    "max",
    "looks",
    "no_early_stop",
    "futility",
    "claim",
    "variances",
    "shape",
    "control",
    "untested",
    "unpaired",
    "order",
    "vary",
    "code",
    # flags that only a later experiment needs
    "grid",
    "scores",
    "calibration",
    "reward_audit",
    "references",
    "references_limit",
    "fail_unless",
    "yes",
    "track",
    "wandb_mode",
    "wandb_entity",
    "wandb_project",
    "parallel",
    "no_retry",
    "verbose",
)
_NO_MARGIN = 0.1  # placeholder for an A/A plan without a margin: decides nothing, and the calibration replaces it


@command_with(
    "esper-ab calibrate --mode shaped --runs 20",
    "esper-ab calibrate --mode wait --runs 4 --episodes 1 --dry-run",
    "esper-ab calibrate --task gym:CartPole-v1 --runs 12",
    "esper-ab calibrate mine.py --set trainer.lr=1e-3 --higher outcome --runs 12",
    cls=ExperimentCommand,
)
@valued(
    "--mode",
    "NAME",
    "The group: a reward mode or a controller; not for a trainer. [default: shaped; for Gymnasium: env]",
)
@valued(
    "--runs",
    "N",
    "Number of independent runs of the group; an even number.",
    type=click.IntRange(min=LEAST_RUNS),
    default=20,
)
@valued(
    "--seeds", "R", "Number of seeds of the experiment that you plan.", type=click.IntRange(1, MOST_SEEDS), default=10
)
@experiment_options(omitted_keys=_OWN, one_task=True)
def command(mode: str | None, runs: int, seeds: int, **options: Any) -> None:
    """Train one group repeatedly, and show how much its runs differ by chance.

    If the calibration is interrupted, repeat the command with its --name to continue.
    """
    # Imported here, because they import the Python API, which --help does not need.
    from esper_ab.commands._requested_campaign import completed, read_what

    flags = typed_flags(options)
    _, request = read_what(flags)
    with completed("calibrate"):
        plan = _plan(mode, runs, flags, request)
    print_plan(plan, json=flags.json, in_full=True, dry_run=flags.dry_run)
    if flags.dry_run:
        return
    # Imported here, so that --help and --dry-run need no scipy.
    from esper_ab.campaign.calibration import calibrate
    from esper_ab.design.calibration_text import calibration_text

    words = list(click.get_current_context().meta[ARGUMENTS])

    def resume_command(directory: Path) -> str:
        name_flags = ["--name", directory.name] if plan.generated else []
        return shell_command("calibrate", *words, *name_flags)

    measures = plan.parts[0].plan.design.measures
    margin_is_known = measures.margin is not None or request.value_of("margin") is not None
    path, calibration = calibrate(
        plan,
        seeds,
        margin_named=margin_is_known,
        watched=not (flags.quiet or flags.json),
        resume_command=resume_command,
    )
    if flags.json:
        click.echo(read_regular(path).decode().strip())
    else:
        click.echo(f"{typeable(calibration_text(calibration))}\ncalibration: {path}")


def _plan(mode: str | None, runs: int, flags: LaunchFlags, request: Request) -> CampaignPlan:
    """Plan two groups with equal settings and unpaired randomness, so that all runs are independent."""
    if runs % 2:
        raise UsageError(f"--runs {runs}: must be even, as in --runs 20")
    if mode is not None and ("," in mode or "=" in mode):
        raise UsageError(f"--mode {mode}: expected one reward mode or controller, as in --mode shaped")
    if request.grid:
        raise UsageError(f"{request.grid_origin}: a calibration measures a group at one setting; leave it out")
    pairs = runs // 2
    kind = kind_of_request(request)
    if kind.free_names and mode is not None:
        raise UsageError(f"--mode {mode}: a trainer has no modes; use its settings, as in --set trainer.lr=1e-3")
    if kind.free_names:
        groups = ("a", "b")
    else:
        groups = (f"a={mode or kind.default_mode}", f"b={mode or kind.default_mode}")
    own_flags: dict[str, object] = {"seeds": pairs, "looks": [pairs], "early_stop": False, "unpaired": True}
    if not kind.declares_margins and request.value_of("margin") is None:
        own_flags["margin"] = _NO_MARGIN
        low, high = read_range(str(request.value_of("outcome_range") or ""))
        if low is not None and high is not None:
            own_flags["margin"] = min(_NO_MARGIN, (high - low) / 2.0)
    campaign = Campaign(
        parts=(Part(name="", asked=parse(request.with_groups(groups, own_flags))),),
        output_dir=flags.output_dir,
        launcher=read_launcher_flags(flags.by_name).over(request.launcher),
        generated_name="calibration-{task}-{time}",
        may_have_begun=True,
    )
    return plan_campaign(campaign, make_launcher(campaign.launcher))
