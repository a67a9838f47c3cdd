"""`esper-ab resume`: go on with an experiment whose coordinator is gone, from what its journal and checkpoints hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import joint_argument
from esper_ab.commands._going_on import allow_changed_code, detach_command, detach_flag, show_answer
from esper_ab.commands._launcher import launcher_of
from esper_ab.commands._options import LAUNCHER_FLAGS, shared_options
from esper_ab.joint.directory import is_joint
from esper_ab.live.console import outlive_terminal
from esper_ab.verdict.requirement import parse_requirement


@click.command(
    epilog=epilog("esper-ab resume experiments/EXPERIMENT", "esper-ab resume experiments/EXPERIMENT --detach")
)
@joint_argument
@shared_options(*LAUNCHER_FLAGS, "quiet", "json")
@click.option("--fail-unless", "requirements", multiple=True, metavar="REQUIREMENT",
              help="Exit status 12 unless the verdict supports it, as in 'simplified better-than shaped'. Repeatable.")
@allow_changed_code
@detach_flag
def command(experiment_dir: Path, requirements: tuple[str, ...], detach: bool, **options: Any) -> None:
    """Go on with EXPERIMENT, however it was stopped, from its journal and checkpoints.

    At its end it reports as `launch` does.
    """
    # Here, so that --help waits for no numpy, scipy or zmq.
    from esper_ab.execution.going_on import resume_run, unfinished

    quiet, json, allowed = options["quiet"], options["json"], options["allow_changed_code"]
    if detach and requirements:
        raise click.UsageError("--detach and --fail-unless exclude each other; `esper-ab report` takes it at the end")
    if is_joint(experiment_dir):
        from esper_ab.commands._joint import resume_all_parts  # with plans of all parts

        resume_all_parts(experiment_dir, requirements, detach=detach, options=options)
        return
    history = unfinished(experiment_dir, allow_changed_code=allowed)
    asked = [parse_requirement(text, history.groups, history.design.comparisons) for text in requirements]
    if detach:
        detach_command("resume", experiment_dir, options=options)
        return
    outlive_terminal(experiment_dir)
    launcher = launcher_of(options)
    resume_run(experiment_dir, launcher, watched=not (quiet or json), allow_changed_code=allowed)
    show_answer(experiment_dir, asked, json=json)
