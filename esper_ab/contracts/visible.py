"""Text of somebody else's making (a log, a message, a name in a journal) on its way to a terminal: shown, not obeyed.

What makes a terminal act, or reorders or hides what a reader sees, appears as its escape: an ESC as `\\x1b`.
"""

from __future__ import annotations


def visible(text: str) -> str:
    """`text` with its lines and tabs, and nothing else that has no shape of its own."""
    return _escaped(text, keep="\n\t")


def visible_line(text: str, limit: int | None = None) -> str:
    """The same in one line, of at most `limit` characters and an ellipsis."""
    shown = _escaped(text[:limit], keep="")
    return shown if limit is None or max(len(text), len(shown)) <= limit else f"{shown[:limit]}…"


def _escaped(text: str, keep: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
