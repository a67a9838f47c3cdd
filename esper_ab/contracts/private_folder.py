"""A folder in the system's temporary place, which nobody else may enter."""

from __future__ import annotations

import tempfile
from pathlib import Path

_PREFIX = "esper-"
_SHORT_TMP = 60  # characters: a path of a unix socket holds 107 bytes


def private_folder(*, below: int = 0) -> Path:
    """Make one with mode 0700; its owner removes it. One that a killed process has left is left to the system.

    Its path is short enough for sockets; `below`: characters of folders that they lie in.
    """
    long = len(tempfile.gettempdir()) + below > _SHORT_TMP
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp" if long else None))
