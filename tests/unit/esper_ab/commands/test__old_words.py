"""Commands and flags of earlier versions: each is answered with what to write today, which exists."""

import click
import pytest
from click.testing import CliRunner

from esper_ab.commands import _old_words
from esper_ab.commands._unknown_option import unknown_option
from esper_ab.commands.cli import TABLE, group, load_command


@pytest.mark.parametrize("name", _old_words._COMMANDS)
def test_an_old_command_is_answered_with_one_of_today(name: str) -> None:
    assert name not in TABLE
    done = CliRunner().invoke(group, [name, "x"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"no command '{name}'; write {_old_words.command_today(name)}" in " ".join(done.stderr.split())
    _, command, *words = _old_words.command_today(name).split()
    with click.Context(load_command(command)) as context:
        known = {flag for one in load_command(command).get_params(context) for flag in one.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("flag", _old_words._FLAGS)
def test_an_old_flag_is_answered_by_every_command_that_had_it_and_is_no_flag_of_theirs(flag: str) -> None:
    needed, today = _old_words._FLAGS[flag]
    answered = 0
    for name in TABLE:
        command = load_command(name)
        if isinstance(command, click.Group):
            continue
        with click.Context(command) as context:
            known = [written for one in command.get_params(context) for written in one.opts]
            said = unknown_option(click.NoSuchOption(flag, ctx=context))
        if needed in ("", *known) and flag not in known:
            answered += 1
            assert said == f"no option {flag}; {today}"
    assert answered
    named = [word for word in today.split() if word.startswith("--")]
    assert not set(named) & _old_words._FLAGS.keys() - {"--output-dir"}


def test_what_was_never_a_word_has_no_answer() -> None:
    assert not _old_words.command_today("xyzzy")
    assert not _old_words.flag_today("--xyzzy", ["--higher"])
    assert not _old_words.flag_today("--trainer", ["--help"])
