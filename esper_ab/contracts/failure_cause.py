"""The cause of a program's failure: what the program wrote, and a text that is equal for equal failures. Pure.

Runs of one program differ in their seeds, settings and folders, and also in process numbers, times and addresses. The
text that decides whether two failures are equal has none of them; people are shown what the program wrote.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import Annotated

import msgspec

_PARTICULARS = (
    (re.compile(r"[^\s'\"(=,:]*/[^\s'\"),:;]*"), "…"),  # paths
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8,}\b"), "#"),  # addresses, hashes
    (re.compile(r"[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?"), "#"),  # numbers, times
)
_MOST_CHARS = 300
_MOST_SENT_CHARS = 400  # with exit status and hint
_MOST_READ_CHARS = 4000  # the patterns take quadratic time where a text has no spaces
# The last line of a Python traceback. Lines may follow it, for example from a logger that says goodbye.
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Failed|Failure)\b(?::|$)")
_PORT_IN_USE = re.compile("address already in use|EADDRINUSE", re.IGNORECASE)
_PORT_HINT = (
    "; if the program always takes this port, give it {port}, which is a free one for each run, or run one at a time "
    "with --max-parallel 1 (in Python max_parallel_runs)"
)
_FROM_OUTSIDE = frozenset(128 + number for number in (signal.SIGKILL, signal.SIGTERM))


CauseText = Annotated[str, msgspec.Meta(max_length=_MOST_SENT_CHARS)]


class Cause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a user's program failed. Both texts are one line; "" if the cause is unknown, or not the program."""

    masked: CauseText = ""  # without numbers, paths and addresses: equal for equal failures of different runs
    text: CauseText = ""  # as the program wrote it


UNKNOWN = Cause()


def without_particulars(text: str) -> str:
    """Return `text` on one line without paths, addresses and numbers, and not too long."""
    text = text[:_MOST_READ_CHARS]
    for pattern, replacement in _PARTICULARS:
        text = pattern.sub(replacement, text)
    return _short(text)


def cause_of_text(text: str) -> Cause:
    """Return the cause of a failure that `text` describes."""
    return Cause(masked=without_particulars(text), text=_short(text[:_MOST_READ_CHARS]))


def cause_of_exit(status: int, lines: Sequence[str]) -> Cause:
    """Return the cause of a command's failure: its exit status, and its last exception or else its last line.

    Returns UNKNOWN for a command that was killed from outside, by SIGKILL or SIGTERM: a retry may succeed.
    `lines`: the last lines of the command's output. `status`: 128 and more for a signal.
    """
    if status in _FROM_OUTSIDE:
        return UNKNOWN
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    last_words = cause_of_text((exceptions or list(lines) or ["it wrote nothing"])[-1])
    hint = port_hint(lines)
    room = _MOST_CHARS - len(hint)
    begin = f"exit status {status}, "
    return Cause(masked=f"{begin}{last_words.masked[:room]}{hint}", text=f"{begin}{last_words.text[:room]}{hint}")


def port_hint(lines: Sequence[str]) -> str:
    """Return what to do about a port that was in use, as the end of a message; "" if no line says that one was."""
    if any(_PORT_IN_USE.search(line) for line in lines):
        return _PORT_HINT
    return ""


def cause_of_exception(error: BaseException) -> Cause:
    """Return the cause of a failure inside a Python trainer: the type and message of its exception."""
    return cause_of_text(f"{type(error).__name__}: {error}")


def _short(text: str) -> str:
    return " ".join(text.split())[:_MOST_CHARS]
