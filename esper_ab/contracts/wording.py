"""Text for users: counts, names, suggestions for typos, and how processes ended; escaping for a terminal.

Pure, except `typeable`, which looks how this process was started.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from decimal import Decimal


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
    if len(names) > 1:
        return " and ".join((", ".join(names[:-1]), names[-1]))
    return "".join(names)


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
