"""Every flag of `launch` has a field; flags that are not given have the field's default."""

import click
import pytest

from esper_ab.commands._launch_flags import LaunchFlags, typed_flags
from esper_ab.commands.cli import load_command
from esper_ab.commands.launch import command

OTHER_FLAGS = {"calibrate": {"mode", "runs", "seeds"}}  # flags that are not those of `launch`


def test_a_launch_without_flags_has_the_default_of_every_field():
    params = command.make_context("launch", []).params
    assert params.keys() == set(LaunchFlags.__struct_fields__)
    assert typed_flags(params) == LaunchFlags()


def test_calibrate_has_the_flags_of_launch():
    params = load_command("calibrate").make_context("calibrate", []).params
    assert (
        typed_flags({name: value for name, value in params.items() if name not in OTHER_FLAGS["calibrate"]})
        == LaunchFlags()
    )


@pytest.mark.parametrize(
    "param", [param for param in command.params if param.expose_value], ids=lambda param: param.name
)
def test_a_typed_flag_sets_its_field(param):
    if isinstance(param, click.Argument):
        line = ["typed"]
    elif param.is_flag:
        line = [param.opts[-1]]
    else:
        line = [param.opts[-1], {"launcher": "slurm", "transport": "tcp"}.get(param.name, "2")]
    params = command.make_context("launch", line).params
    assert getattr(typed_flags(params), param.name) == params[param.name]
