"""Helpers that declare flags as click decorators, shared by all commands. Imports no libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]
Flags = dict[str, Any]  # values by name, as click parsed them

PATH = click.Path(path_type=Path)
AT_LEAST_1 = click.IntRange(min=1)
MOST_SEEDS = 10_000  # for commands that compute before there are runs


def takes(metavar: str | None, words: str, **how: Any) -> dict[str, Any]:
    """Return arguments of `click.option` for a flag with a value.

    If the metavar is N, the value is an integer. The default is shown in the help.
    """
    kind = int if metavar == "N" else None
    return {"metavar": metavar, "help": words, "type": kind, "show_default": bool(how.get("default")), **how}


def valued(flag: str, metavar: str | None, words: str, *names: str, **how: Any) -> Decorator:
    """Declare a flag with a value; `names` may give its short form and the name of its argument."""
    return click.option(flag, *names, **takes(metavar, words, **how))


def switched(words: str) -> dict[str, Any]:
    """Return arguments of `click.option` for a flag without a value."""
    return {"is_flag": True, "help": words}


def switch(flag: str, words: str, *names: str, **how: Any) -> Decorator:
    """Declare a flag without a value; `names` are as in `valued`."""
    return click.option(flag, *names, **switched(words), **how)


JSON = switched("Print JSON, and nothing else, on stdout.")
json_flag = click.option("--json", **JSON)


def in_order(decorators: Sequence[Decorator]) -> Decorator:
    """Return a decorator that applies all `decorators`; the help lists their flags in this order."""

    def decorate(function: Function) -> Function:
        for one in reversed(decorators):
            function = one(function)
        return function

    return decorate
