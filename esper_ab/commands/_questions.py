"""Ask the user on a terminal what the data cannot tell; elsewhere, refuse with the flags that answer it."""

from __future__ import annotations

import sys
from typing import Any

import click

from esper_ab.commands._options import ARGUMENTS
from esper_ab.contracts.errors import OpenQuestion, SettingName, Unanswered, UsageError, as_flag
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.visible import visible

_PAIRED = {"paired": True, "unpaired": False}  # two flags of one option


def answers_to(error: Unanswered, command: str) -> dict[str, Any]:
    """Return the options that answer every question, by name.

    Raises UsageError if there is no terminal, or if the user has no answer to a question.
    """
    typed_words = click.get_current_context().meta[ARGUMENTS]
    if not sys.stdin.isatty():
        flags = " ".join(map(_completing, error.questions))
        raise UsageError(f"{error}. Complete the command: {shell_command(command, *typed_words)} {flags}")
    chosen_answers = [_ask(error.source, question) for question in error.questions]
    flags = " ".join(map(as_flag, chosen_answers))
    click.echo(typeable(f"The same without questions: {shell_command(command, *typed_words)} {flags}\n"), err=True)
    return dict(map(_option, chosen_answers))


def _completing(question: OpenQuestion) -> str:
    first_flag, *other_flags = map(as_flag, question.answers)
    if not other_flags:
        return first_flag
    return f"{first_flag} (or {' or '.join(other_flags)})"


def _ask(source: str, question: OpenQuestion) -> SettingName:
    click.echo(visible(f"{source}: {question.about}."), err=True)
    if len(question.answers) == 1:
        (only_answer,) = question.answers
        if not click.confirm(f"Go on with {as_flag(only_answer)}?", err=True):
            raise UsageError("nothing was judged")
        return only_answer
    flags = {str(place): answer for place, answer in enumerate(question.answers, 1)}
    for place, answer in flags.items():
        click.echo(f"  {place}  {as_flag(answer)}", err=True)
    return flags[click.prompt("Which", type=click.Choice(tuple(flags)), err=True)]


def _option(answer: SettingName) -> tuple[str, Any]:
    if answer.key in _PAIRED:
        return ("paired", _PAIRED[answer.key])
    return (answer.key, answer.value)
