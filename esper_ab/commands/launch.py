"""`esper-ab launch`, also `python -m esper_ab.launch`: from flags to a finished comparison. Decides nothing itself."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import epilog, invoke, leaving
from esper_ab.commands._options import ARGUMENTS, ExperimentCommand, experiment_options
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import split_commas
from esper_ab.trackers.subject import NAMES

if TYPE_CHECKING:
    from esper_ab.execution import experiment as execution
    from esper_ab.trackers.settings import Tracking


@click.command(
    cls=ExperimentCommand,
    epilog=epilog(
        "esper-ab launch --groups shaped,simplified,wait --seeds 10",
        "esper-ab launch --groups shaped --group fast:ppo.lr=3e-3 --dry-run",
        "esper-ab launch --config experiment.toml --detach",
        "esper-ab launch --seeds auto --max 20 --devices cuda:0 cuda:1",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@experiment_options()
def command(**options: Any) -> None:
    """Train one policy per group and seed on paired randomness, and compare the groups.

    The groups of a seed train at the same time.
    """
    # Here, so that --help waits for no plan.
    from esper_ab.commands._launcher import launcher_of
    from esper_ab.control.preflight import check_launcher
    from esper_ab.execution import experiment as execution
    from esper_ab.execution.affordable import confirm
    from esper_ab.execution.answer import show_answer
    from esper_ab.live.console import outlive_terminal
    from esper_ab.settings.parse import parse
    from esper_ab.settings.parts import parse_parts
    from esper_ab.settings.request import read_request
    from esper_ab.verdict.requirement import parse_requirement

    if options["detach"] and options["fail_unless"]:
        raise click.UsageError("--detach and --fail-unless exclude each other; `esper-ab report` takes it at the end")
    request = read_request(options)
    if (several := parse_parts(request)) is not None:
        from esper_ab.commands._joint import launch_joint  # with plans of several

        launch_joint(several, launcher_of(options, request.launcher), options, tracking_of(options))
        return
    known, tracking = load_known(options), tracking_of(options)
    asked = parse(request)
    launcher = launcher_of(options, request.launcher)
    planned = replace(execution.plan_experiment(
        asked, options["out"], launcher, known=known, only_plan=options["dry_run"] or options["detach"],
    ), tracking=tracking)  # fmt: skip
    for text in options["fail_unless"]:
        parse_requirement(text, [one.name for one in planned.plan.experiment.groups], planned.plan.design.comparisons)
    check_launcher(launcher, planned.plan.lanes, planned.machine.devices)
    _announce(planned, options)
    confirm(planned, yes=options["yes"], dry_run=options["dry_run"])
    if options["dry_run"]:
        return
    if options["detach"]:
        _detach(planned, as_json=options["json"])
        return
    planned = execution.make_directory(planned, launcher)
    outlive_terminal(planned.experiment_dir)
    execution.carry_out(planned, launcher, watched=not (options["quiet"] or options["json"]))
    show_answer(planned.experiment_dir, options["fail_unless"], "json" if options["json"] else "brief")


def _detach(planned: execution.PlannedExperiment, *, as_json: bool) -> None:
    """Start this command again under the name of `planned`, without this terminal."""
    from esper_ab.execution import experiment as execution  # as in `command`
    from esper_ab.execution.detach import detach, reserve

    planned = execution.claim_directory(planned, reserve)
    typed = [arg for arg in click.get_current_context().meta[ARGUMENTS] if arg not in ("--detach", "--yes")]
    folder = planned.experiment_dir
    detached = detach("esper_ab.launch", [*typed, "--yes", "--name", folder.name], folder)
    click.echo(detached.shown(as_json=as_json))


def load_known(options: dict[str, Any]) -> execution.Beforehand:
    """What the files that are named say; nothing without a file."""
    from esper_ab.execution import experiment as execution  # as in `command`
    from esper_ab.execution.reward_audit import load_reward_audit

    calibration = None
    if options["calibration"] is not None:
        from esper_ab.design.calibration_file import load_calibration  # with scipy: a launch without it is fast

        calibration = load_calibration(options["calibration"])
    reward_audit = None if options["reward_audit"] is None else load_reward_audit(options["reward_audit"])
    return execution.Beforehand(calibration=calibration, reward_audit=reward_audit)


def _announce(planned: execution.PlannedExperiment, options: dict[str, Any]) -> None:
    """Print the plan: as text before it is carried out, as JSON when it is all that was asked for."""
    from esper_ab.execution import experiment as execution  # as in `command`

    if options["json"] and options["dry_run"]:
        click.echo(execution.encode_plan(planned))
    elif not options["json"]:
        click.echo(execution.format_plan(planned))
        if (calibration := planned.known.calibration) is not None:
            from esper_ab.design.power_text import describe_design_power  # with scipy, as a calibration

            spread = calibration.spread
            power = describe_design_power(planned.plan.design, planned.plan.run_sd or spread.sd, spread.runs - 1)
            click.echo(f"power: {power}")


def tracking_of(options: dict[str, Any]) -> Tracking:
    """The trackers that the flags ask for; UsageError, before anything starts, for what cannot be tracked with."""
    from esper_ab.trackers.settings import Tracking, check_tracking, wandb_mode  # as in `command`

    names = split_commas(options["track"], "--track") if options["track"] is not None else []
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise UsageError(f"--track {unknown[0]}: no such tracker; there are {', '.join(NAMES)}")
    for flag in ("wandb_mode", "wandb_entity", "wandb_project"):
        if options[flag] is not None and "wandb" not in names:
            raise UsageError(f"--{flag.replace('_', '-')} goes with --track wandb")
    tracking = Tracking(
        wandb=wandb_mode("--wandb-mode", options["wandb_mode"]) if "wandb" in names else "off",
        wandb_entity=options["wandb_entity"] or "", wandb_project=options["wandb_project"] or "",
        tensorboard="tensorboard" in names,
    )  # fmt: skip
    check_tracking(tracking)
    return tracking


def main() -> int:
    """Entry of `python -m esper_ab.launch`."""
    return leaving(invoke(command, sys.argv[1:], "python -m esper_ab.launch"))
