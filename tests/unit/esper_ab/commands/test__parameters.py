"""A single-value flag that is given twice with different values is refused."""

import click
import pytest
from click.testing import CliRunner

from esper_ab.commands._parameters import Command
from esper_ab.commands.cli import TABLE, load_command


def every_command() -> list[click.Command]:
    commands = []
    for name in TABLE:
        command = load_command(name)
        commands += command.commands.values() if isinstance(command, click.Group) else [command]
    return commands


@pytest.mark.parametrize("command", every_command(), ids=lambda command: command.name)
def test_a_single_value_flag_that_is_given_twice_is_refused(command: click.Command) -> None:
    assert isinstance(command, Command)
    for option in command.params:
        if not isinstance(option, click.Option) or option.multiple or (option.is_flag and not option.secondary_opts):
            continue
        flag = option.opts[-1]
        arguments = [flag, option.secondary_opts[0]] if option.is_flag else [flag, "1", flag, "2"]
        result = CliRunner().invoke(command, arguments)
        assert (result.exit_code, "is given twice; remove one" in result.stderr) == (2, True), (flag, result.output)


@click.command(cls=Command)
@click.argument("words", nargs=-1)
@click.option("--size", type=int, default=0)
@click.option("--also", multiple=True)
@click.option("-v", "--verbose", is_flag=True)
@click.option("--deep/--flat", default=None)
def small(words, size, also, verbose, deep) -> None:
    """Print what was said."""
    click.echo((words, size, also, verbose, deep))


@pytest.mark.parametrize(
    ("args", "printed_text"),
    [
        ("a --size 3 --size 3 b", "(('a', 'b'), 3, (), False, None)"),
        ("--also 1 --also 2 -v --verbose", "((), 0, ('1', '2'), True, None)"),
        ("--flat --flat -- --size", "(('--size',), 0, (), False, False)"),
    ],
)
def test_repeated_flags_are_accepted_for_equal_values_or_lists(args: str, printed_text: str) -> None:
    assert CliRunner().invoke(small, args.split()).stdout.strip() == printed_text


@pytest.mark.parametrize(
    ("args", "flag"),
    [
        ("--size 3 --size 4", "--size"),
        ("--size=3 --size=4", "--size"),
        ("--deep --flat", "--deep or --flat"),
    ],
)
def test_two_different_values_of_a_flag_are_refused(args: str, flag: str) -> None:
    result = CliRunner().invoke(small, args.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{flag} is given twice; remove one" in result.stderr
