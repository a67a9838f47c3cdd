"""`launch` with workers that have no torch: the live view, and what outlives the terminal, as in the command.

    python -m support.fake_command RUN_DIR EPISODES
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from esper_ab.commands._exit_status import invoke
from esper_ab.control import experiment_run
from esper_ab.launchers.local import LocalLauncher
from esper_ab.live.console import outlive_terminal
from esper_ab.live.terminal import LiveView
from support import fake_plans, stand_in


@click.command()
@click.argument("experiment_dir", type=click.Path(path_type=Path))
@click.argument("episodes", type=int)
def command(experiment_dir: Path, episodes: int) -> None:
    stand_in.die_with_parent()
    outlive_terminal(experiment_dir)
    experiment_dir.mkdir(exist_ok=True)
    plan = fake_plans.plan(episodes=episodes)
    with LiveView(plan, Console()) as view:
        experiment_run.run(plan, experiment_dir, LocalLauncher("support.fake_worker:main"), [view])
    click.echo("the summary")


if __name__ == "__main__":
    sys.exit(invoke(command, sys.argv[1:], "support.fake_command"))
