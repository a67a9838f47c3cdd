"""The names that an experiment may have: that of its directory."""

from __future__ import annotations

import re

from esper_ab.contracts.errors import UsageError

_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def check_name(name: str, origin: str = "--name") -> None:
    """Raise UsageError if `name` is not a portable folder name; the message starts with `origin`."""
    if not _FOLDER_NAME.fullmatch(name):
        raise UsageError(f"{origin} {name!r}: must start with a letter or digit and contain only these and _.-")
