"""The last number of the output that follows a name, or that a pattern finds."""

from __future__ import annotations

import re

from workers.kinds.trainer.outcome_sources.left import Found, Left

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b)"


def read(key: str, left: Left) -> Found:
    """Return the number of the last line with NAME=3.2, "NAME": 3.2 or NAME 3.2; ValueError if there is none."""
    outcome = find(key, left)
    if outcome is None:
        lines = [line.strip() for line in left.output() if line.strip()]
        last = f"its last line is {lines[-1][:160]!r}" if lines else "it wrote nothing"
        raise ValueError(f"no number follows {key!r} in the output of the script; {last}")
    return outcome


def find(key: str, left: Left) -> Found | None:
    """Return the last match, or None."""
    pattern = pattern_of(key)
    outcome = None
    for number, line in enumerate(left.output(), 1):
        for match in pattern.finditer(line):
            try:
                value = float(match[1])
            except (TypeError, ValueError):
                raise ValueError(f"stdout:{key} finds {match[1]!r}, not a number, in line {number}") from None
            outcome = Found(value, f"line {number} of its output: {line.strip()[:80]}", f"stdout:{key}")
    return outcome


def pattern_of(key: str) -> re.Pattern[str]:
    """Return the pattern whose first group is the number; `key` is such a pattern itself if it has a group."""
    if "(" in key:
        return re.compile(key)
    name = re.escape(key.rstrip(" =:"))
    return re.compile(rf"(?<![\w./-]){name}[\"']?(?:\s*[=:|]\s*|\s+){_NUMBER}", re.IGNORECASE)
