"""Check command lines in help texts and documents against the real commands."""

import itertools
import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import click

from esper_ab.commands.cli import TABLE, group, load_command


@cache
def leaves() -> dict[str, click.Command]:
    """Return the commands that are not groups, by name: "growth rewards" is a command, "growth" is a group."""
    commands = {name: load_command(name) for name in TABLE}
    return {name: command for name, command in commands.items() if not isinstance(command, click.Group)} | {
        f"{name} {subcommand}": command
        for name, command_group in commands.items()
        if isinstance(command_group, click.Group)
        for subcommand, command in command_group.commands.items()
    }


def examples_of(text: str | None) -> tuple[str, ...]:
    """Return the example command lines of an epilog; empty if it has no examples."""
    _, heading, examples = re.sub(r"\\\n\s+", "", text or "").partition("Examples:\n")
    return tuple(line.strip() for line in examples.partition("\n\n")[0].splitlines()) if heading else ()


def check_command_line(line: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (command, parameters) of each `esper-ab` command in `line`; click raises for unknown options."""
    command_params = []
    for arguments in commands_in(line):
        name = next((name for name in leaves() if arguments[: name.count(" ") + 1] == name.split()), "")
        assert name, f"{line}: there is no such command"
        args = arguments[name.count(" ") + 1 :]
        context = leaves()[name].make_context(name, args, parent=click.Context(group, info_name="esper-ab"))
        command_params.append((name, context.params))
    return command_params


def commands_in(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each `esper-ab` command, also within eval "$(...)", without comments and redirections."""
    substitution = re.search(r"\$\((.*)\)", line)
    lexer = shlex.shlex(substitution[1] if substitution else line, posix=True, punctuation_chars=";|&>")
    lexer.whitespace_split = True
    for is_separator, words in itertools.groupby(lexer, lambda word: set(word) <= set(";|&>")):
        program, *args = [""] if is_separator else words
        if program == "esper-ab":
            yield args
        elif [program, *args[:2]] == ["python", "-m", "esper_ab.launch"]:
            yield ["launch", *args[2:]]
