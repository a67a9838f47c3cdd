"""Text of somebody else's making (a log, a message, a name in a journal) on its way to a terminal: shown, not obeyed.

What makes a terminal act, or reorders what a reader sees, appears as its escape: an ESC as `\\x1b`.
"""

from __future__ import annotations

import re

# Controls of both blocks, separators of lines, marks that turn the direction of writing, halves of surrogate pairs.
_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_BREAKS = re.compile("[\t\n]")


def visible(text: str) -> str:
    """`text` with its lines and tabs, and nothing else that a terminal would act on."""
    return _ACTS.sub(_escape, text)


def visible_line(text: str, limit: int | None = None) -> str:
    """The same in one line, of at most `limit` characters and an ellipsis."""
    shown = _BREAKS.sub(_escape, visible(text[:limit]))
    return shown if limit is None or max(len(text), len(shown)) <= limit else f"{shown[:limit]}…"


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape", "surrogatepass").decode("ascii")
