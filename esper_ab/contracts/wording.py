"""How counts, numbers, names and likely mistypings are worded in sentences of every room. Pure."""

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
    """Write `value` in so many significant digits, never as a power of ten: "0.035", "1.5", "150"."""
    return format(Decimal(f"{value:.{digits}g}"), "f")


def capital(words: str) -> str:
    """The start of a sentence; for `named` where it does not begin with a name."""
    return f"Any{words[3:]}" if words.startswith("any two of ") else words


def named(pairs: Sequence[tuple[str, str]]) -> str:
    """ "a and b"; "any two of a, b, c"; "a and each of b, c"; "a and b, c and d"."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    if len(pairs) > 1 and len(pairs) == len(names) * (len(names) - 1) // 2:
        return f"any two of {', '.join(names)}"
    for hub in names if len(pairs) > 1 else ():
        if all(hub in pair for pair in pairs):
            return f"{hub} and each of {', '.join(name for name in names if name != hub)}"
    return ", ".join(f"{a} and {b}" for a, b in pairs)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """End a sentence about an unknown name with those that are close, or with all there are."""
    known = list(known)
    return _close(name, known) or f"there is {', '.join(known) or 'none'}"


def which_setting(key: str, known: Iterable[str]) -> str:
    """End a sentence about an unknown setting with those that are close, or with where all are: they are too many."""
    return _close(key, list(known)) or "see docs/cli.md, or what `esper-ab init` writes"


def _close(name: str, known: list[str]) -> str:
    last = name.rpartition(".")[2]
    ends = [key for key in known if key.rpartition(".")[2] == last]
    close = ends or difflib.get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(close)}?" if close else ""
