"""Escaping of untrusted text (a log, a message, a name in a journal) for a terminal.

Characters that control a terminal, or that reorder or hide text, are replaced by their escapes: an ESC by `\x1b`.
"""

from __future__ import annotations

import json


def visible(text: str) -> str:
    """Return `text` with every non-printable character escaped, except newlines and tabs."""
    return _escape(text, kept_chars="\n\t")


def visible_line(text: str, limit: int | None = None) -> str:
    """Return `text` on one line, with newlines and tabs escaped as well.

    A text that is longer than `limit` characters is cut and gets an ellipsis.
    """
    line = _escape(text[:limit], kept_chars="")
    if limit is None or max(len(text), len(line)) <= limit:
        return line
    return f"{line[:limit]}…"


def visible_json(data: bytes) -> str:
    r"""Return encoded JSON as text in which every non-printable character is escaped as \uXXXX, except newlines.

    JSON has such characters in strings only, so its meaning is unchanged.
    """
    text = data.decode()
    if text.isprintable():
        return text
    escapes = {ord(char): json.dumps(char)[1:-1] for char in set(text) - {"\n"} if not char.isprintable()}
    return text.translate({**escapes, 0x7F: "\\u007f"})


def _escape(text: str, kept_chars: str) -> str:
    if text.isprintable():
        return text
    escapes = {
        char: char.encode("unicode_escape", "surrogatepass").decode("ascii") for char in set(text) - set(kept_chars)
    }
    return "".join(char if char.isprintable() else escapes.get(char, char) for char in text)
