"""Numeric flags have bounds, and values out of bounds are refused."""

import click
import pytest

from esper_ab.commands.cli import TABLE, load_command
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_request

# Flags of settings, whose bounds are those of the settings.
SETTINGS = {"episodes", "steps", "n_envs", "rng_seed", "devices_per_run", "threads", "total_timesteps"}


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_integer_option_has_bounds_unless_it_is_a_setting(name):
    unbounded_names = {param.name for param in load_command(name).params if param.type is click.INT}
    assert unbounded_names <= SETTINGS


@pytest.mark.parametrize("key", sorted(SETTINGS))
def test_a_setting_out_of_its_bounds_is_refused(key):
    with pytest.raises(UsageError, match="expected int >= "):
        parse(read_request({"groups": "wait,random", key: -1}))
