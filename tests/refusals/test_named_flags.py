"""Every flag that a sentence names exists in the command that prints it, or in a command that it names."""

import json
import re
import shlex

import click
from support.goldens.golden_json import names, stored
from support.goldens.refusals import Refusal, expected, refusals

from esper_ab.commands.cli import TABLE, load_command

FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-]| ?{)")  # not one of a user's script, as in --lr {lr}
OTHER_PROGRAM = re.compile(r"`(?!esper-ab)[a-z]+ [^`]*`")
COMMANDS = {"experiment": "launch", "joint": "launch", "table": "judge", "planned table": "judge", "refused": "judge"}


def flags_of(command: click.Command) -> set[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        subcommands = [command.get_command(context, name) for name in command.list_commands(context)]
        return {flag for subcommand in subcommands for flag in flags_of(subcommand)}
    # Not `get_params`, which keeps the help flag of this context, without -h, for tests after this one.
    options = [option for option in command.params if isinstance(option, click.Option)]
    return {text.lstrip("-") for option in options for text in (*option.opts, *option.secondary_opts)} | {"help"}


FLAGS = {name: flags_of(load_command(name)) for name in TABLE}


def unknown_flags(sentence: str, command: str) -> set[str]:
    """Return the flags in `sentence` that neither `command` has nor another one whose name is in the sentence."""
    known_flags = set(FLAGS[command])
    for name in TABLE:
        if re.search(rf"(`|esper-ab ){name}\b", sentence):
            known_flags |= FLAGS[name]
    return {*FLAG.findall(OTHER_PROGRAM.sub("", sentence))} - known_flags


def words_of(refusal: Refusal) -> list[str]:
    return shlex.split(refusal.run) if isinstance(refusal.run, str) else list(refusal.run)


def test_refusals_name_flags_of_their_commands():
    found = {}
    for refusal in refusals():
        command = words_of(refusal)[0] if refusal.run else ""
        if command in FLAGS:
            message = expected(refusal.table)[refusal.name]
            given = {*FLAG.findall(" ".join(words_of(refusal)))} | {*FLAG.findall(json.dumps(refusal.files))}
            if unknown := unknown_flags(message, command) - given:
                found[refusal.id] = unknown
    assert found == {}


def test_the_sentences_of_answers_name_flags_of_their_commands():
    found = {}
    for name in names():
        golden = stored(name)
        for sentence in _texts(golden["answer"]):
            if unknown := unknown_flags(sentence, COMMANDS[golden["kind"]]):
                found[name, sentence] = unknown
    assert found == {}


def _texts(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def test_an_unknown_flag_is_found():
    assert unknown_flags("no worst outcome is declared (--worst)", "launch") == {"worst"}
    assert unknown_flags("`esper-ab judge --worst 0`, as for --lr {lr} and `ray start --labels`", "launch") == set()
