"""What is said of an option that a command does not have: the one that was meant, by its meaning or by its letters."""

from __future__ import annotations

from difflib import get_close_matches

import click

from esper_ab.contracts.errors import Setting, as_flag


def unknown_option(error: click.NoSuchOption) -> str:
    """Write the sentence: options of the same meaning in other tools first, then those spelt alike, closest first."""
    from esper_ab.settings.foreign_keys import OURS  # for an option that does not exist alone: others do not wait

    said = f"no option {error.option_name}"
    known = [flag for parameter in error.ctx.command.params for flag in parameter.opts] if error.ctx else []
    same = [_flag(key) for key in OURS.get(error.option_name.lstrip("-").replace("-", "_"), ())]
    if same and {flag.split()[0] for flag in same} <= set(known):
        return f"{said}; here that is {' and '.join(same)}"
    close = get_close_matches(error.option_name, known, n=2)
    return f"{said}; did you mean {' or '.join(close)}?" if close else said


def _flag(key: str) -> str:
    return as_flag(Setting(key, "...", assigned=True) if "." in key else Setting(key))
