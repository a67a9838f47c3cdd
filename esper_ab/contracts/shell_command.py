"""Command lines suggested to a user, quoted so that a shell reads them back unchanged."""

from __future__ import annotations

import shlex
from pathlib import Path


def shell_command(command: str, *arguments: str | Path) -> str:
    """Return `esper-ab COMMAND ARGUMENT …`; arguments with spaces or shell characters are quoted."""
    return shlex.join(["esper-ab", command, *map(str, arguments)])
