""" "Did you mean" for an unknown option, by meaning or by spelling."""

import click
import pytest

from esper_ab.commands import launch
from esper_ab.commands._unknown_option import unknown_option

# An unknown option, and the suggested one: the option with the same meaning, or the one with the closest spelling.


@click.command
def small():
    """It has no option but for the help."""


@pytest.mark.parametrize(
    ("command", "option", "message"),
    [
        (launch.command, "--repeats", "no option --repeats; here it is called --seeds"),
        (
            launch.command,
            "--seed",
            "no option --seed; --seeds N is the number of seeds, --rng-seed the root of the random numbers",
        ),
        (launch.command, "--num-timesteps", "no option --num-timesteps; here it is called --total-timesteps"),
        (launch.command, "--learning-rate", "no option --learning-rate; here it is called --set ppo.lr=..."),
        (launch.command, "--xyzzy", "no option --xyzzy"),
        (small, "--repeats", "no option --repeats"),
    ],
)
def test_the_refusal_of_an_unknown_option_names_the_equivalent_option(command, option, message):
    with pytest.raises(click.NoSuchOption) as caught:
        command.make_context("x", [option, "3"])
    assert unknown_option(caught.value) == message
