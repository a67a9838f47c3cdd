"""`esper-ab run FILE`: an experiment that a Python or TOML file declares. Decides nothing itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._launcher import read_launcher_flags
from esper_ab.commands._options import ARGUMENTS, LAUNCHER_FLAGS, ExperimentCommand, shared_options
from esper_ab.execution.affordable import confirm
from esper_ab.execution.detach import detach
from esper_ab.execution.experiment import PlannedExperiment, encode_plan
from esper_ab.live.console import outlive_terminal
from esper_ab.report.build import printed

_FLAGS = {"name": "--name", "max_parallel": "--max-parallel", "out": "--output-dir"}  # by key


@click.command(cls=ExperimentCommand, epilog=epilog(
    "esper-ab run experiment.py --dry-run", "esper-ab run experiment.py --output-dir results --max-parallel 4",
    "esper-ab run experiment.py --experiment fast --no-retry --json", "esper-ab run experiment.toml --detach",
))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--experiment", default="", metavar="NAME", help="Which one, when FILE has several: its name, or that of "
              "its function.")
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
@click.option("--output-dir", type=click.Path(path_type=Path), default=Path("experiments"), show_default=True,
              metavar="DIR", help="Where experiment directories go.")
@click.option("--name", default="", metavar="NAME", help="Name of the experiment directory. [default: the "
              "experiment's]")
@click.option("--parallel/--no-parallel", default=True, help="As many runs at once as the devices carry, or one.")
@click.option("--max-parallel", type=click.IntRange(min=1), metavar="N", help="At most N runs at the same time.")
@click.option("--no-retry", is_flag=True, help="A run whose worker dies is given up at once.")
@click.option("--max-retries", type=click.IntRange(min=0), metavar="N", help="Restarts at one milestone of a run "
              "before it is given up. [default: 2]")
@shared_options(*LAUNCHER_FLAGS)
@click.option("-v", "--verbose", is_flag=True, help="A line on stderr for everything that is recorded, in place of the "
              "live view.")
@click.option("--quiet", is_flag=True, help="No live view.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
@click.option("--yes", is_flag=True, help="Start what is estimated to take more than a day, or more memory than there "
              "is, without asking.")
@click.option("--detach", is_flag=True, help="Go on without this terminal; see `attach` and `stop`.")
def command(file: Path, **options: Any) -> None:
    """Run the experiment that FILE declares and compare its variants.

    FILE.py: what create_NAME_experiment(), get_experiment() or experiment, defined in it, gives (docs/python.md).
    FILE.toml: the format of `launch --config`.
    """
    _check_together(options)
    # Here, so that --help waits for no numpy or scipy.
    from esper_ab.api.files import load_declaration
    from esper_ab.api.results import Results
    from esper_ab.api.running import Runner, conduct, prepare, show_plan

    runner = Runner(**_runner_arguments(options))
    declared = load_declaration(file, options["experiment"])
    runner = replace(runner, launcher=runner.launcher.over(declared.launcher))
    planned = prepare(declared, runner, only_plan=options["dry_run"] or options["detach"])
    if not options["json"]:
        show_plan(planned)
    elif options["dry_run"]:
        click.echo(encode_plan(planned, about=planned.about, tracking=planned.tracking))
    confirm(planned, yes=options["yes"], dry_run=options["dry_run"])
    if options["dry_run"]:
        return
    if options["detach"]:
        _detach(planned, as_json=options["json"])
        return
    outlive_terminal(planned.experiment_dir)
    paths, failure = conduct(planned, runner)
    if failure is None or not options["json"]:  # as JSON the error is all that is said
        click.echo(printed(paths, "json" if options["json"] else "brief"))
    for line in () if options["json"] else Results(planned.experiment_dir, paths.content, "").failure_lines:
        click.echo(line)
    if failure is not None:
        raise failure


def _check_together(options: dict[str, Any]) -> None:
    """click.UsageError for flags that contradict each other."""
    if options["verbose"] and options["quiet"]:
        raise click.UsageError("--verbose and --quiet exclude each other")
    if options["no_retry"] and options["max_retries"]:
        raise click.UsageError("--no-retry and --max-retries exclude each other")
    if not options["parallel"] and (options["max_parallel"] or 1) > 1:
        raise click.UsageError("--no-parallel is one run at a time; leave it or --max-parallel out")


def _runner_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `api.running.Runner` that the flags ask for."""
    retries = {} if options["max_retries"] is None else {"max_retries": options["max_retries"]}
    return {
        "output_dir": options["output_dir"], "parallel_runs": options["parallel"],
        "max_parallel_runs": options["max_parallel"], "retry_failed_runs": not options["no_retry"],
        "name": options["name"], "launcher": read_launcher_flags(options), "narrated": options["verbose"],
        "words": _FLAGS,
        "watched": not (options["quiet"] or options["json"] or options["verbose"]),
    } | retries  # fmt: skip


def _detach(planned: PlannedExperiment, *, as_json: bool) -> None:
    """Start this command again under the name of `planned`, without this terminal."""
    typed = [arg for arg in click.get_current_context().meta[ARGUMENTS] if arg not in ("--detach", "--yes")]
    folder = planned.experiment_dir
    detached = detach("esper_ab.commands.cli", ["run", *typed, "--yes", "--name", folder.name], folder)
    click.echo(detached.shown(as_json=as_json))
