"""The cause of a program's failure, as a text that is equal for equal failures of different runs. Pure.

Runs of one program differ in their seeds, settings and folders, and also in process numbers, times and addresses.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

_PARTICULARS = (
    (re.compile(r"[^\s'\"(=,:]*/[^\s'\"),:;]*"), "…"),  # paths
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{8,}\b"), "#"),  # addresses, hashes
    (re.compile(r"[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?"), "#"),  # numbers, times
)
_MOST_CHARS = 300
_MOST_READ_CHARS = 4000  # the patterns take quadratic time where a text has no spaces
# The last line of a Python traceback. Lines may follow it, for example from a logger that says goodbye.
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Failed|Failure)\b(?::|$)")
_PORT_IN_USE = re.compile("address already in use|EADDRINUSE", re.IGNORECASE)
_PORT_HINT = (
    "; if the program always takes this port, give it {port}, which is a free one for each run, or run one at a time "
    "with --max-parallel 1"
)
_FROM_OUTSIDE = frozenset(128 + number for number in (signal.SIGKILL, signal.SIGTERM))


def without_particulars(text: str) -> str:
    """Return `text` on one line without paths, addresses and numbers, and not too long."""
    text = text[:_MOST_READ_CHARS]
    for pattern, replacement in _PARTICULARS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())[:_MOST_CHARS]


def cause_of_exit(status: int, lines: Sequence[str]) -> str:
    """Return the cause of a command's failure: its exit status, and its last exception or else its last line.

    Returns "" for a command that was killed from outside, by SIGKILL or SIGTERM: a retry may succeed.
    `lines`: the last lines of the command's output. `status`: 128 and more for a signal.
    """
    if status in _FROM_OUTSIDE:
        return ""
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    last_words = (exceptions or list(lines) or ["it wrote nothing"])[-1]
    hint = port_hint(lines)
    text = without_particulars(last_words)[: _MOST_CHARS - len(hint)]
    return f"exit status {status}, {text}{hint}"


def port_hint(lines: Sequence[str]) -> str:
    """Return what to do about a port that was in use, as the end of a message; "" if no line says that one was."""
    if any(_PORT_IN_USE.search(line) for line in lines):
        return _PORT_HINT
    return ""


def cause_of_exception(error: BaseException) -> str:
    """Return the cause of a failure inside a Python trainer: the type and message of its exception."""
    return without_particulars(f"{type(error).__name__}: {error}")
