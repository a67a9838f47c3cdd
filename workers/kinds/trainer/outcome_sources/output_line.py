"""The numbers of the output that follow a name, or that a pattern finds."""

from __future__ import annotations

import re

from workers.kinds.trainer.outcome_sources.left import Left
from workers.kinds.trainer.outcome_sources.values import Values

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b)"


def read(key: str, output: Left) -> Values:
    """Return the numbers after NAME in lines with NAME=3.2, "NAME": 3.2 or NAME 3.2; ValueError if there is none."""
    values = find(key, output)
    if values is None:
        raise ValueError(nothing_found(key, output))
    return values


def nothing_found(key: str, output: Left) -> str:
    """Say that the output has no such number, with its last line."""
    lines = [line.strip() for line in output.output() if line.strip()]
    last_words = f"its last line is {lines[-1][:160]!r}" if lines else "it wrote nothing"
    return f"no number follows {key!r} in the output of the script; {last_words}"


def find(key: str, output: Left) -> Values | None:
    """Return all matches, or None if there is none."""
    pattern = pattern_of(key)
    matches = list[tuple[str | None, int, str]]()
    for number, line in enumerate(output.output(), 1):
        matches += [(match[1], number, line) for match in pattern.finditer(line)]
    if not matches:
        return None

    def at(place: int) -> float:
        text, number, _ = matches[place]
        try:
            return float(text or "")
        except ValueError:
            raise ValueError(f"stdout:{key} finds {text!r}, not a number, in line {number}") from None

    def where(place: int) -> str:
        _, number, line = matches[place]
        return f"line {number} of its output: {line.strip()[:80]}"

    return Values(len(matches), at, where, f"stdout:{key}")


def pattern_of(key: str) -> re.Pattern[str]:
    """Return the pattern whose first group is the number; `key` is such a pattern itself if it has a group."""
    if "(" in key:
        return re.compile(key)
    name = re.escape(key.rstrip(" =:"))
    return re.compile(rf"(?<![\w./-]){name}[\"']?(?:\s*[=:|]\s*|\s+){_NUMBER}", re.IGNORECASE)
