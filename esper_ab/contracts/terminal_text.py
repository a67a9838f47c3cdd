"""Text for a terminal: escaped text, command lines, and how processes ended."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence
from pathlib import Path

# --- visible ---------------------------------------------------------------------------------------------------------
# Escaping of untrusted text (a log, a message, a name in a journal) for a terminal.
#
# Characters that control a terminal, or that reorder or hide text, appear as their escape: an ESC as `\x1b`.


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


# --- shell command ---------------------------------------------------------------------------------------------------
# Command lines suggested to a user, quoted so that a shell reads them back unchanged.


def shell_command(command: str, *arguments: str | Path) -> str:
    """Return `esper-ab COMMAND ARGUMENT …`; arguments with spaces or shell characters are quoted."""
    return shlex.join(["esper-ab", command, *map(str, arguments)])


# --- endings ---------------------------------------------------------------------------------------------------------
# How processes have ended, in words.


def name_of_signal(number: int) -> str:
    """Return the name of a signal, "SIGKILL"; of one that has none, as those for real time, "signal 40"."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_told(status: int, said: Sequence[str]) -> str:
    """Say how a process ended, and the last of the lines that it wrote."""
    return how_ended(status) + (f"; its last line: {said[-1].strip()}" if said else " and said nothing")


def how_ended(status: int) -> str:
    """Say how a process ended that has this status, as subprocess has it: below 0 for a signal."""
    return f"was killed by {name_of_signal(-status)}" if status < 0 else f"ended with exit status {status}"
