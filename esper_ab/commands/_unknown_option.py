""" "Did you mean" for an unknown option, by meaning or by spelling."""

from __future__ import annotations

import click

from esper_ab.contracts.errors import (
    Setting,
    as_flag,
)
from esper_ab.contracts.wording import close_names


def unknown_option(error: click.NoSuchOption) -> str:
    """Return the error for an unknown option.

    It says what to write instead of an option of an earlier version; else it suggests the option of the same meaning
    or, if there is none, options with similar names.
    """
    # Imported only for this error.
    from esper_ab.commands._old_words import flag_today
    from esper_ab.settings.foreign_keys import OURS

    said = f"no option {error.option_name}"
    if error.ctx:
        known = [flag for parameter in error.ctx.command.params for flag in parameter.opts]
    else:
        known = []
    if today := flag_today(error.option_name, known):
        return f"{said}; {today}"
    same = [
        as_flag(Setting(key, "...", assigned=True) if "." in key else Setting(key))
        for key in OURS.get(error.option_name.lstrip("-").replace("-", "_"), ())
    ]
    if same and {flag.split()[0] for flag in same} <= set(known):
        return f"{said}; here it is called {' and '.join(same)}"
    close = close_names(error.option_name, known, 2)
    return f"{said}; did you mean {' or '.join(close)}?" if close else said
