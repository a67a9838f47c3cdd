"""Flags: each number is refused out of its bounds before anything starts; a help says what its command takes."""

from __future__ import annotations

import click
import pytest

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import TABLE, group, load_command
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_request

# Flags of settings, whose bounds are those of the settings.
OF_SETTINGS = {"episodes", "steps", "n_envs", "rng_seed", "devices_per_run", "threads", "total_timesteps"}
HUGE = "1" + 400 * "0"


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_whole_number_without_bounds_is_a_setting(name):
    unbounded = {param.name for param in load_command(name).params if param.type is click.INT}
    assert unbounded <= OF_SETTINGS


@pytest.mark.parametrize("key", sorted(OF_SETTINGS))
def test_a_setting_out_of_its_bounds_is_refused(key):
    with pytest.raises(UsageError, match="expected int >= "):
        parse(read_request({"groups": "wait,random", key: -1}))


@pytest.mark.parametrize("flags", [
    *(("calibrate", "--dry-run", "--seeds", value) for value in ("0", "-5", HUGE)),
    ("calibrate", "--dry-run", "--runs", "2"), ("calibrate", "--dry-run", "--runs", "5"),
    ("design", "--groups", "a,b", "--margin", "1", "--seeds", "0"),
    ("design", "--groups", "a,b", "--margin", "1", "--seeds", HUGE),
    ("design", "--groups", "a,b", "--margin", "1", "--seeds", "6", "--choose", HUGE),
    ("evaluate", "policy.pt", "--rng-seed", "-1"),
    ("launch", "--dry-run", "--seeds", "auto", "--max", "0"),
    *(("power", "--sd-run", "3", "--margin", "2", flag, value)
      for flag in ("--seeds", "--comparisons") for value in ("0", HUGE)),
])  # fmt: skip
def test_a_number_out_of_its_bounds_is_refused_in_a_line_that_names_its_flag(flags, capsys):
    assert invoke(group, flags, "esper-ab") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert flags[-2] in line


@pytest.mark.parametrize(("name", "several"), [("launch", True), ("calibrate", False)])
def test_a_help_speaks_of_several_tasks_where_the_command_takes_them(name, several):
    options = {param.name: param for param in load_command(name).params}
    for flag in ("task", "margin"):
        told = f"{options[flag].metavar} {options[flag].help}"
        assert (("several" in told) or ("," in str(options[flag].metavar))) is several


@pytest.mark.parametrize("name", ["design", "judge"])
def test_a_help_says_that_a_margin_is_asked_for(name):
    options = {param.name: param for param in load_command(name).params}
    assert "there is no default" in options["margin"].help
