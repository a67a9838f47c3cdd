"""Escaping of untrusted text (a log, a message, a name in a journal) for a terminal.

Characters that control a terminal, or that reorder or hide text, appear as their escape: an ESC as `\\x1b`.
"""

from __future__ import annotations


def visible(text: str) -> str:
    """Return `text` with every non-printable character escaped, except newlines and tabs."""
    return _escaped(text, keep="\n\t")


def visible_line(text: str, limit: int | None = None) -> str:
    """Return `text` on one line, newlines and tabs escaped too, cut to `limit` characters and an ellipsis."""
    shown = _escaped(text[:limit], keep="")
    return shown if limit is None or max(len(text), len(shown)) <= limit else f"{shown[:limit]}…"


def _escaped(text: str, keep: str) -> str:
    if text.isprintable():
        return text
    escaped = {char: char.encode("unicode_escape", "surrogatepass").decode("ascii") for char in set(text) - set(keep)}
    return "".join(char if char.isprintable() else escaped.get(char, char) for char in text)
