"""Lines of a shell, as help and documents show them, held against the commands that there are."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from typing import Any

import click

from esper_ab.commands.cli import TABLE, group, load_command


def check_command_line(line: str) -> list[tuple[str, dict[str, Any]]]:
    """(command, parameters) of every command of ours in `line`; click refuses what does not exist."""
    found = []
    for name, *args in commands_in(line):
        assert name in TABLE, f"{line}: there is no command {name}"
        context = load_command(name).make_context(name, args, parent=click.Context(group, info_name="esper-ab"))
        found.append((name, context.params))
    return found


def commands_in(line: str) -> Iterator[list[str]]:
    """Name and arguments of each, also within eval "$(...)", without comments and what a shell does with the output."""
    inner = re.search(r"\$\((.*)\)", line)
    lexer = shlex.shlex(inner[1] if inner else line, posix=True, punctuation_chars=";|&>")
    lexer.whitespace_split = True
    for ends, words in itertools.groupby(lexer, lambda word: set(word) <= set(";|&>")):
        program, *args = [""] if ends else words
        if program == "esper-ab":
            yield args
        elif [program, *args[:2]] == ["python", "-m", "esper_ab.launch"]:
            yield ["launch", *args[2:]]
