"""Command lines that a user is told to type, as the shell will read them back."""

from __future__ import annotations

import shlex
from pathlib import Path


def typed(command: str, *arguments: str | Path) -> str:
    """`esper-ab COMMAND ARGUMENT …`, with quotes around what has a space or another sign of the shell's in it."""
    return shlex.join(["esper-ab", command, *map(str, arguments)])
