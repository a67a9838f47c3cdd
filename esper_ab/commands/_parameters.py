"""Flags as click decorators, and the class of commands that take them. Shared by all commands; imports no libraries."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from esper_ab.contracts.shell_command import typeable

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]
Flags = dict[str, Any]  # values by name, as click parsed them

PATH = click.Path(path_type=Path)
AT_LEAST_1 = click.IntRange(min=1)
MOST_SEEDS = 10_000  # for commands that compute before there are runs


def takes(metavar: str | None, words: str, **parameters: Any) -> dict[str, Any]:
    """Return arguments of `click.option` for a flag with a value.

    If the metavar is N, the value is an integer. The default is shown in the help.
    """
    kind = int if metavar == "N" else None
    return {
        "metavar": metavar,
        "help": words,
        "type": kind,
        "show_default": bool(parameters.get("default")),
        **parameters,
    }


def valued(flag: str, metavar: str | None, words: str, *names: str, **parameters: Any) -> Decorator:
    """Declare a flag with a value; `names` may give its short form and the name of its argument."""
    return click.option(flag, *names, **takes(metavar, words, **parameters))


def switched(words: str) -> dict[str, Any]:
    """Return arguments of `click.option` for a flag without a value."""
    return {"is_flag": True, "help": words}


def switch(flag: str, words: str, *names: str, **parameters: Any) -> Decorator:
    """Declare a flag without a value; `names` are as in `valued`."""
    return click.option(flag, *names, **switched(words), **parameters)


JSON = switched("Print JSON, and nothing else, on stdout.")
json_flag = click.option("--json", **JSON)


def in_order(decorators: Sequence[Decorator]) -> Decorator:
    """Return a decorator that applies all `decorators`; the help lists their flags in this order."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


class CommandGroup(click.Group):
    """A group of commands whose help shows commands as the user can type them."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help for the screen."""
        return typeable(super().get_help(ctx))


class Command(click.Command):
    """A command that refuses a flag which is given twice with different values, as in `--paired --unpaired`.

    Its help shows commands as the user can type them.
    """

    def get_help(self, ctx: click.Context) -> str:
        """Return the help for the screen."""
        return typeable(super().get_help(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, after checking for flags with two values."""
        if not ctx.resilient_parsing:  # which is completion in a shell
            self._refuse_second_values(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_second_values(self, ctx: click.Context, args: list[str]) -> None:
        single_options = [
            option for option in self.get_params(ctx) if isinstance(option, click.Option) and not option.multiple
        ]
        repeating_command = click.Command(
            self.name, params=[_repeatable(option) for option in self.get_params(ctx)], add_help_option=False
        )
        values_by_name, _, _ = repeating_command.make_parser(ctx).parse_args(args=list(args))
        for option in single_options:
            values = dict.fromkeys(values_by_name.get(option.name or "") or ())
            if len(values) > 1:
                raise click.UsageError(f"{_shown(option)} is given twice; remove one", ctx)


def _repeatable(option: click.Parameter) -> click.Parameter:
    """Return a copy whose values the parser collects, instead of keeping the last."""
    repeatable_option = copy.copy(option)
    if isinstance(repeatable_option, click.Option):
        repeatable_option.multiple = True
    return repeatable_option


def _shown(option: click.Option) -> str:
    flags = [flag for flag in option.opts if flag.startswith("--")] or option.opts
    return " or ".join((*flags, *option.secondary_opts))
