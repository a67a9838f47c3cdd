"""Text for users: counts, names, suggestions for typos, and how processes ended; escaping for a terminal.

Pure, except `typeable`, which looks how this process was started.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
import signal
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path


def counted(count: int, noun: str) -> str:
    """Write "1 run", "6 runs", "0 runs"; `noun` is the singular of a regular plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def times(count: int) -> str:
    """Write "once", "3 times"."""
    return "once" if count == 1 else f"{count} times"


def n_pairs(count: int) -> str:
    """Write "1 pair", "6 pairs"."""
    return counted(count, "pair")


def significant(value: float, digits: int = 2) -> str:
    """Write `value` with this many significant digits, never as a power of ten: "0.035", "1.5", "150"."""
    return format(Decimal(f"{value:.{digits}g}"), "f")


def capital(words: str) -> str:
    """Capitalise the result of `named` for the start of a sentence, unless the result starts with a name."""
    return f"Any{words[3:]}" if words.startswith("any two of ") else words


def named(pairs: Sequence[tuple[str, str]]) -> str:
    """Name pairs of groups: "a and b"; "any two of a, b, c"; "a and each of b, c"; "a and b, c and d"."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    if len(pairs) > 1 and len(pairs) == len(names) * (len(names) - 1) // 2:
        return f"any two of {', '.join(names)}"
    for hub in names if len(pairs) > 1 else ():
        if all(hub in pair for pair in pairs):
            return f"{hub} and each of {', '.join(name for name in names if name != hub)}"
    return ", ".join(f"{a} and {b}" for a, b in pairs)


def listed(names: Sequence[str]) -> str:
    """Join names: "a", "a and b", "a, b and c"."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: it suggests similar names, or lists all known names."""
    known = list(known)
    return _close(name, known) or f"known: {', '.join(known) or 'none'}"


def which_setting(key: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown setting: it suggests similar settings or says where to look."""
    return _close(key, list(known)) or "see docs/cli.md, or the file that `esper-ab init` writes"


def _close(name: str, known: list[str]) -> str:
    last = name.rpartition(".")[2]
    ends = [key for key in known if key.rpartition(".")[2] == last]
    close = ends or close_names(name, known, 3)
    return f"did you mean {' or '.join(close)}?" if close else ""


def close_names(name: str, known: Iterable[str], most: int) -> list[str]:
    """Return the known names that are spelled like `name`, the closest first; upper and lower case count as one."""
    by_folded = {one.casefold(): one for one in known}
    if name.casefold() in by_folded:
        return [by_folded[name.casefold()]]
    return [by_folded[one] for one in difflib.get_close_matches(name.casefold(), by_folded, n=most)]


# --- visible ---------------------------------------------------------------------------------------------------------
# Escaping of untrusted text (a log, a message, a name in a journal) for a terminal.
#
# Characters that control a terminal, or that reorder or hide text, are replaced by their escapes: an ESC by `\x1b`.


def visible(text: str) -> str:
    """Return `text` with every non-printable character escaped, except newlines and tabs."""
    return _escaped(text, keep="\n\t")


def visible_line(text: str, limit: int | None = None) -> str:
    """Return `text` on one line, with newlines and tabs escaped as well.

    A text that is longer than `limit` characters is cut and gets an ellipsis.
    """
    shown = _escaped(text[:limit], keep="")
    return shown if limit is None or max(len(text), len(shown)) <= limit else f"{shown[:limit]}…"


def visible_json(data: bytes) -> str:
    r"""Return encoded JSON as text in which every non-printable character is escaped as \uXXXX, except newlines.

    JSON has such characters in strings only, so its meaning is unchanged.
    """
    text = data.decode()
    if text.isprintable():
        return text
    escaped = {ord(char): json.dumps(char)[1:-1] for char in set(text) - {"\n"} if not char.isprintable()}
    return text.translate({**escaped, 0x7F: "\\u007f"})


def _escaped(text: str, keep: str) -> str:
    if text.isprintable():
        return text
    escaped = {char: char.encode("unicode_escape", "surrogatepass").decode("ascii") for char in set(text) - set(keep)}
    return "".join(char if char.isprintable() else escaped.get(char, char) for char in text)


# --- shell command ---------------------------------------------------------------------------------------------------
# Command lines suggested to a user, quoted so that a shell reads them back unchanged.
#
# Every text in these packages, and so every stored one (plans, reports, journals, JSON), says `esper-ab COMMAND`,
# because others read it later, elsewhere; no digest depends on how a command was started. Only text for the screen is
# translated: where `esper-ab` is not on PATH, it says `python -m esper_ab COMMAND`, or the path of `esper-ab` that was
# typed.

_PROGRAM = "esper-ab"
_COMMAND = re.compile(rf"(?<![\w./=-]){_PROGRAM} (?=[a-z\[-])")  # not the end of a path


def shell_command(command: str, *arguments: str | Path) -> str:
    """Return `esper-ab COMMAND ARGUMENT …`; arguments with spaces or shell characters are quoted."""
    return shlex.join([_PROGRAM, command, *map(str, arguments)])


def typeable(text: str) -> str:
    """Return `text` for the screen, with the program of every command in it as the user of this process can type it."""
    if not _COMMAND.search(text):
        return text
    program = program_here()
    return _COMMAND.sub(lambda _: f"{program} ", text)


def program_here() -> str:
    """Return what starts this installation's program in the user's shell, quoted for it."""
    import shutil  # imported here, because most calls print no command

    on_path = shutil.which(_PROGRAM)
    if on_path is not None and Path(on_path).resolve().parent in _script_folders():
        return _PROGRAM
    if Path(sys.argv[0]).name == _PROGRAM:  # started by its path, as in .venv/bin/esper-ab
        return shlex.quote(sys.argv[0])
    interpreter = sys.orig_argv[0] if sys.orig_argv else sys.executable
    return f"{shlex.quote(interpreter)} -m esper_ab"


def _script_folders() -> tuple[Path, ...]:
    """Return where pip puts the programs of this interpreter: its own folder and the user's."""
    import sysconfig  # imported here, because most calls print no command

    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    return tuple(Path(sysconfig.get_path("scripts", scheme)).resolve() for scheme in schemes)


# --- endings ---------------------------------------------------------------------------------------------------------
# How processes ended, in words.


def name_of_signal(number: int) -> str:
    """Return the name of a signal, "SIGKILL", or "signal 40" for one without a name, such as a real-time signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_told(status: int, said: Sequence[str]) -> str:
    """Describe how a process ended, with the last line that it printed."""
    return how_ended(status) + (f"; its last line: {said[-1].strip()}" if said else " and printed nothing")


def how_ended(status: int) -> str:
    """Describe how a process ended; as in subprocess, a negative `status` means a signal."""
    return f"was killed by {name_of_signal(-status)}" if status < 0 else f"ended with exit status {status}"
