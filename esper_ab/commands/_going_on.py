"""What `resume` and `extend` share: the flags of both, going on without this terminal, and the answer at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._launcher import read_launcher_flags
from esper_ab.execution.detach import detach
from esper_ab.execution.experiment import write_report
from esper_ab.report.build import printed
from esper_ab.verdict.requirement import Requirement, require

allow_changed_code = click.option("--allow-changed-code", is_flag=True, help="Go on with another state of the code "
                                  "than that of the records; the verdict is then BLOCKED.")
detach_flag = click.option("--detach", is_flag=True, help="Go on without this terminal; see `status -f` and `stop`.")


def detach_command(name: str, experiment_dir: Path, *args: str, options: dict[str, Any]) -> None:
    """Run the command `name` for `experiment_dir` detached, with `args` and the flags of `options` about workers."""
    allowed = ("--allow-changed-code",) if options["allow_changed_code"] else ()
    workers = read_launcher_flags(options).words
    detached = detach("esper_ab.commands.cli", [name, str(experiment_dir), *args, *workers, *allowed], experiment_dir)
    click.echo(detached.shown(as_json=options["json"]))


def show_answer(experiment_dir: Path, requirements: Sequence[Requirement] = (), *, json: bool) -> None:
    """Write the report and print the answer; ConditionNotMet where one of the requirements does not hold."""
    paths = write_report(experiment_dir)
    click.echo(printed(paths, "json" if json else "brief"))
    require(requirements, paths.content.comparisons)
