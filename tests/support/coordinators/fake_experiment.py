"""A coordinator process with worker processes that do not import torch, for tests that kill them.

    python -m support.coordinators.fake_experiment RUN_DIR EPISODES [--live]
    python -m support.coordinators.fake_experiment RUN_DIR resume

--live: with the live view; the experiment outlives the terminal, as under `launch`.
"""

import sys
from pathlib import Path

import click
from rich.console import Console

from esper_ab.commands._exit_status import invoke
from esper_ab.control import experiment_run
from esper_ab.launchers.local import LocalLauncher
from esper_ab.live.console import outlive_terminal
from esper_ab.live.terminal import LiveView
from support.coordinators import stand_in
from support.plans import fake_plans


@click.command()
@click.argument("experiment_dir", type=click.Path(path_type=Path))
@click.argument("episodes_or_resume")
@click.option("--live", is_flag=True)
def command(experiment_dir: Path, episodes_or_resume: str, live: bool) -> None:
    launcher = LocalLauncher("support.workers.fake_worker:main")
    if episodes_or_resume == "resume":
        experiment_run.resume(experiment_dir, launcher, ())
        return
    plan = fake_plans.plan(episodes=int(episodes_or_resume))
    experiment_dir.mkdir(exist_ok=True)
    if not live:
        experiment_run.run(plan, experiment_dir, launcher, ())
        return
    outlive_terminal(experiment_dir)
    with LiveView(plan, Console()) as view:
        experiment_run.run(plan, experiment_dir, launcher, [view])
    click.echo("the summary")


if __name__ == "__main__":
    stand_in.die_with_parent()
    sys.exit(invoke(command, sys.argv[1:], "support.coordinators.fake_experiment"))
