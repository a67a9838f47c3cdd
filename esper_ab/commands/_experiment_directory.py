"""The argument that names an experiment directory, as most commands have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.readers.joint_directory import refuse_joint


class ExperimentDirectory(click.Path):
    """Its type; the directory need not exist.

    `joint`: whether the command takes that of a joint experiment, too; else it is refused with the parts that it takes.
    """

    def __init__(self, *, joint: bool = False) -> None:
        super().__init__(path_type=Path)
        self._joint = joint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        path = super().convert(value, param, ctx)
        if not self._joint and isinstance(path, Path):
            refuse_joint(path, ctx.info_name if ctx and ctx.info_name else "this command")
        return path


experiment_argument = click.argument("experiment_dir", metavar="EXPERIMENT", type=ExperimentDirectory())
joint_argument = click.argument("experiment_dir", metavar="EXPERIMENT", type=ExperimentDirectory(joint=True))
