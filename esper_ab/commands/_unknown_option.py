""" "Did you mean" for an unknown option, by meaning or by spelling."""

from __future__ import annotations

import click

from esper_ab.commands._old_words import flag_today
from esper_ab.contracts.errors import SettingName, as_flag
from esper_ab.contracts.wording import close_names
from esper_ab.settings.foreign_keys import OURS

_SEED = "--seeds N is the number of seeds, --rng-seed the root of the random numbers"


def unknown_option(error: click.NoSuchOption) -> str:
    """Return the error for an unknown option.

    It says what to write instead of an option of an earlier version; else it suggests the option of the same meaning
    or, if there is none, options with similar names.
    """
    message = f"no option {error.option_name}"
    known_flags: list[str] = []
    if error.ctx:
        for parameter in error.ctx.command.params:
            known_flags += parameter.opts
    if today := flag_today(error.option_name, known_flags):
        return f"{message}; {today}"
    if error.option_name == "--seed" and {"--seeds", "--rng-seed"} <= set(known_flags):
        return f"{message}; {_SEED}"
    keys = OURS.get(error.option_name.lstrip("-").replace("-", "_"), ())
    same_flags = [_flag_of(key) for key in keys]
    if same_flags and {flag.split()[0] for flag in same_flags} <= set(known_flags):
        return f"{message}; here it is called {' and '.join(same_flags)}"
    close = close_names(error.option_name, known_flags, 2)
    if close:
        return f"{message}; did you mean {' or '.join(close)}?"
    return message


def _flag_of(key: str) -> str:
    """Return the flag of a setting; a setting with a dot has none of its own, but is set by --set."""
    if "." in key:
        return as_flag(SettingName(key, "...", assigned=True))
    return as_flag(SettingName(key))
