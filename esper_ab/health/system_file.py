"""Files of /proc and /sys, some of which a system may lack."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """Return the contents of a system file; "" if it does not exist."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
