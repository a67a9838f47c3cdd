"""What is said of an option that there is not: the one that means the same elsewhere, or the one spelt most alike."""

from __future__ import annotations

import click
import pytest

from esper_ab.commands._unknown_option import unknown_option
from esper_ab.commands.launch import command


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--repeats", "no option --repeats; here that is --seeds"),
        ("--num-timesteps", "no option --num-timesteps; here that is --total-timesteps"),
        ("--learning-rate", "no option --learning-rate; here that is --set ppo.lr=..."),
        ("--xyzzy", "no option --xyzzy"),
    ],
)
def test_the_option_that_was_meant_is_named(option: str, said: str) -> None:
    with pytest.raises(click.NoSuchOption) as caught:
        command.make_context("launch", ["--groups", "a=shaped", option, "3"])
    assert unknown_option(caught.value) == said


def test_options_that_the_command_has_not_are_never_proposed() -> None:
    @click.command
    def small() -> None: ...

    with pytest.raises(click.NoSuchOption) as caught:
        small.make_context("small", ["--seeds", "3"])
    assert unknown_option(caught.value) == "no option --seeds"
