"""Click decorators of the flags in _experiment_flags, shared by every command that trains. Imports no libraries."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from esper_ab.commands._experiment_flags import FLAGS, HOST_FLAGS, ONE_TASK_FLAGS, SECTIONS
from esper_ab.commands._parameters import Command, Decorator, in_order, switch

ARGUMENTS = "esper_ab.arguments"
_LIST_FLAGS = ("slots", "devices")  # their values may be several words
# What `launch --help` shows.
_FIRST = {
    "What most experiments need": tuple(SECTIONS["What most experiments need"]),
    "What is compared": ("control", "grid", "fail_unless"),
    "Where it runs, and what comes out": (
        "max_parallel",
        "launcher",
        "output_dir",
        "name",
        "json",
        "help_all",
        "help",
    ),
}
_ALL = "esper_ab.all"  # key in ctx.meta, set if the help shows every flag
_SWITCHED = ("deterministic", "parallel")  # flags with an opposite

LAUNCHER_FLAGS = ("launcher", "transport", "ray_address", "ray_label", "ray_wait")


def _declared(flags: dict[str, dict[str, Any]]) -> Decorator:
    options = []
    for name, attributes in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if name in _SWITCHED:
            flag += f"/--no-{name}"
        spellings = [flag]
        if name == "verbose":
            spellings.insert(0, "-v")
        options.append(click.option(*spellings, name, **attributes))
    return in_order(options)


def shared_options(*names: str) -> Decorator:
    """Return a decorator that adds the named flags of `launch` to a click command, in this order."""
    return _declared({name: FLAGS[name] for name in names})


def hosts_options(*names: str) -> Decorator:
    """Return a decorator that adds the named flags to a click command that grows hosts without an experiment."""
    return _declared({name: HOST_FLAGS[name] for name in names})


def experiment_options(*, omitted_keys: Sequence[str] = (), one_task: bool = False) -> Decorator:
    """Return a decorator that adds WHAT and all flags of an experiment except `omitted_keys`, in order of the help."""
    flags = dict(FLAGS)
    if one_task:
        flags |= ONE_TASK_FLAGS
    add_flags = _declared({name: attributes for name, attributes in flags.items() if name not in omitted_keys})
    add_what = click.argument("what", metavar="[WHAT]", required=False)
    return lambda function: add_what(add_flags(function))


def _show_all(ctx: click.Context, _param: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


help_all = switch("--help-all", "Show every flag and exit.", is_eager=True, expose_value=False, callback=_show_all)


def flag_help() -> dict[str, str]:
    """Return a mapping from each flag to its one-line help, without the default."""
    return {name: attributes["help"].partition("[default")[0].rstrip() for name, attributes in FLAGS.items()}


def gather_lists(args: Sequence[str]) -> list[str]:
    """Rewrite `--slots early mid late` as `--slots early,mid,late`, which click can parse."""
    gathered_words: list[str] = []
    collecting = False
    for arg in args:
        if collecting and not arg.startswith("-"):
            if gathered_words[-1]:
                gathered_words[-1] += ","
            gathered_words[-1] += arg.strip(",")
            continue
        collecting = arg in {f"--{flag}" for flag in _LIST_FLAGS}
        gathered_words.append(arg)
        if collecting:
            gathered_words.append("")
    return gathered_words


def _refuse_spaces(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Raise click.UsageError for `--groups a b`: a flag whose values are separated by commas, followed by words that
    are neither flags nor an experiment, a trainer or a command.
    """
    flags = {
        flag
        for option in command.get_params(ctx)
        if isinstance(option, click.Option) and option.name != "group" and "," in (option.metavar or "")
        for flag in option.opts
    }
    for place, flag in enumerate(args):
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), args[place + 1 :]))
        if flag in flags and len(words) > 1 and not any(map(_may_be_what, words[1:])):
            joined_words = ",".join(word.strip(",") for word in words)
            raise click.UsageError(f"{flag} takes its values separated by commas: write {flag} {joined_words}", ctx)


def _may_be_what(word: str) -> bool:
    return word.endswith((".toml", ".py")) or bool({" ", "{", "/"} & {*word})


class RecordingCommand(Command):
    """A command that keeps its raw arguments in `ctx.meta[ARGUMENTS]`, so that a message can complete the line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta.setdefault(ARGUMENTS, tuple(args))
        return super().parse_args(ctx, args)


class ExperimentCommand(RecordingCommand):
    """A command whose list flags accept values separated by spaces."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        _refuse_spaces(self, ctx, args)
        return super().parse_args(ctx, gather_lists(args))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings; options without a heading come last, and only with --help-all."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {param.opts[-1][2:].replace("-", "_"): param.get_help_record(ctx) for param in options}
        is_short = "help_all" in records and _ALL not in ctx.meta
        headings: Mapping[str, Iterable[str]] = _FIRST if is_short else SECTIONS
        sections = {heading: [records.pop(name, None) for name in names] for heading, names in headings.items()}
        if not is_short:
            sections["More"] = list(records.values())
        for heading, rows in sections.items():
            shown_rows = [row for row in rows if row is not None]
            if shown_rows:
                with formatter.section(heading):
                    formatter.write_dl(shown_rows)
