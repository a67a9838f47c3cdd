"""Commands and flags of earlier versions: each refusal names the present command or flag."""

import click
import pytest
from click.testing import CliRunner

from esper_ab.commands import _old_words
from esper_ab.commands._unknown_option import unknown_option
from esper_ab.commands.cli import TABLE, group, load_command


@pytest.mark.parametrize("name", _old_words._COMMANDS)
def test_the_refusal_of_an_old_command_names_its_successor(name: str) -> None:
    assert name not in TABLE
    result = CliRunner().invoke(group, [name, "x"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"no command '{name}'; write {_old_words.command_today(name)}" in " ".join(result.stderr.split())
    _, command, *arguments = _old_words.command_today(name).split()
    loaded_command = load_command(command)
    with click.Context(loaded_command, **loaded_command.context_settings) as context:
        flags = {flag for param in loaded_command.get_params(context) for flag in param.opts}
    assert {argument for argument in arguments if argument.startswith("-")} <= flags


@pytest.mark.parametrize("flag", _old_words._FLAGS)
def test_the_refusal_of_an_old_flag_names_its_successor(flag: str) -> None:
    other_flags, today = _old_words._FLAGS[flag]
    refused_flags = 0
    for name in TABLE:
        command = load_command(name)
        if isinstance(command, click.Group):
            continue
        # With its settings, because the command keeps the help option of its first context.
        with click.Context(command, **command.context_settings) as context:
            flags = [spelling for param in command.get_params(context) for spelling in param.opts]
            message = unknown_option(click.NoSuchOption(flag, ctx=context))
        if other_flags in ("", *flags) and flag not in flags:
            refused_flags += 1
            assert message == f"no option {flag}; {today}"
    assert refused_flags
    present_flags = [word for word in today.split() if word.startswith("--")]
    assert not set(present_flags) & _old_words._FLAGS.keys() - {"--output-dir"}


def test_an_unknown_command_or_flag_gets_no_suggestion() -> None:
    assert not _old_words.command_today("xyzzy")
    assert not _old_words.flag_today("--xyzzy", ["--higher"])
    assert not _old_words.flag_today("--trainer", ["--help"])
