"""What `resume` and `extend` share: the flags of both, and going on without this terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._launcher import read_launcher_flags
from esper_ab.execution.detach import detach

allow_changed_code = click.option("--allow-changed-code", is_flag=True, help="Go on with another state of the code "
                                  "than that of the records; the verdict is then BLOCKED.")
detach_flag = click.option("--detach", is_flag=True, help="Go on without this terminal; see `attach` and `stop`.")


def detach_command(name: str, experiment_dir: Path, *args: str, options: dict[str, Any]) -> None:
    """Run the command `name` for `experiment_dir` detached, with `args` and the flags of `options` about workers."""
    allowed = ("--allow-changed-code",) if options["allow_changed_code"] else ()
    workers = read_launcher_flags(options).words
    detached = detach("esper_ab.commands.cli", [name, str(experiment_dir), *args, *workers, *allowed], experiment_dir)
    click.echo(detached.shown(as_json=options["json"]))
