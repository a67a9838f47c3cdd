"""`esper-ab calibrate`: one condition against itself (A/A), to see what chance alone does on this task and machine."""

from __future__ import annotations

from typing import Any

import click

from esper_ab.commands import _completing as completing
from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import ExperimentCommand, experiment_options
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import LEAST_RUNS
from esper_ab.execution import experiment as execution
from esper_ab.launchers import Launcher
from esper_ab.settings.flags import parse_flags

_OWN = (
    "groups", "group", "replicates", "max", "looks", "no_early_stop", "futility", "control", "untested", "exam",
    "unpaired", "order",
)  # decided here


@click.command(cls=ExperimentCommand, epilog=epilog(
    "esper-ab calibrate --mode shaped --runs 20", "esper-ab calibrate --mode wait --runs 4 --episodes 1 --dry-run"
))
@click.option("--mode", shell_complete=completing.mode, default="shaped", show_default=True, metavar="NAME",
              help="The condition: a reward mode or a controller.")
@click.option("--runs", type=int, default=20, show_default=True, metavar="N", help="How often it is trained, each time "
              "on its own randomness.")
@click.option("--replicates", type=int, default=10, show_default=True, metavar="R", help="Of the experiment planned "
              "later: the rules are tried for it.")
@experiment_options(without=_OWN)
def command(mode: str, runs: int, replicates: int, **options: Any) -> None:
    """Train one condition again and again, and show how often each rule would find a difference in it."""
    launcher = execution.make_launcher(options["launcher"], options["transport"])
    planned = _plan(mode, runs, launcher, options)
    if not options["json"]:
        click.echo(execution.format_plan(planned))
    elif options["dry_run"]:
        click.echo(execution.encode_plan(planned))
    if options["dry_run"]:
        return
    planned = execution.make_directory(planned, launcher)
    # Here, so that --help, completion and --dry-run wait for no scipy.
    from esper_ab.design.calibration_text import calibration_text
    from esper_ab.execution.calibration import calibrate, calibration_file

    found = calibrate(planned, launcher, replicates, watched=not (options["quiet"] or options["json"]))
    file = calibration_file(planned.experiment_dir)
    if options["json"]:
        click.echo(file.read_text(encoding="utf-8").strip())
    else:
        click.echo(f"{calibration_text(found)}\ncalibration: {file}")


def _plan(mode: str, runs: int, launcher: Launcher, options: dict[str, Any]) -> execution.PlannedExperiment:
    """Plan two groups with the same settings and unpaired randomness: independent runs that change lanes as usual."""
    if runs < LEAST_RUNS or runs % 2:
        raise UsageError(f"--runs {runs}: an even number, {LEAST_RUNS} at least, as in --runs 20")
    if "," in mode or "=" in mode:
        raise UsageError(f"--mode {mode}: one reward mode or controller, as in --mode shaped")
    pairs = str(runs // 2)
    own = {"groups": f"a={mode},b={mode}", "replicates": pairs, "looks": pairs, "no_early_stop": True, "unpaired": True}
    asked = parse_flags({**options, **own})
    return execution.plan_experiment(asked, options["out"], launcher, "calibration-{task}-{time}")
