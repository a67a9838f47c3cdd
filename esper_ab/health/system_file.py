"""Files of /proc and /sys, which a system may have or not."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """Return the contents of a file of the system; "" where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
