"""The EXPERIMENT argument that most commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.readers.joint_directory import refuse_joint


class ExperimentDirectory(click.Path):
    """Parameter type for an experiment directory, which need not exist.

    With `joint`, the command also accepts a joint experiment; without it, the error lists the parts to choose from.
    """

    def __init__(self, *, joint: bool = False) -> None:
        super().__init__(path_type=Path)
        self._joint = joint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; UsageError for a joint experiment if the command does not accept one."""
        path = super().convert(value, param, ctx)
        if not self._joint and isinstance(path, Path):
            command = "this command"
            if ctx and ctx.info_name:
                command = ctx.info_name
            refuse_joint(path, command)
        return path


experiment_argument = click.argument("experiment_dir", metavar="EXPERIMENT", type=ExperimentDirectory())
joint_argument = click.argument("experiment_dir", metavar="EXPERIMENT", type=ExperimentDirectory(joint=True))
