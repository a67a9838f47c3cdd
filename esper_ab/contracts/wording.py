"""Text for users: counts, names, and suggestions for typos. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain


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
    names = list(dict.fromkeys(chain.from_iterable(pairs)))
    if len(pairs) > 1:
        if len(pairs) == len(names) * (len(names) - 1) // 2:
            return f"any two of {', '.join(names)}"
        for hub in names:
            if all(hub in pair for pair in pairs):
                return f"{hub} and each of {', '.join(name for name in names if name != hub)}"
    return ", ".join(f"{a} and {b}" for a, b in pairs)


def listed(names: Sequence[str]) -> str:
    """Join names: "a", "a and b", "a, b and c"."""
    if len(names) > 1:
        return " and ".join((", ".join(names[:-1]), names[-1]))
    return "".join(names)


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: it suggests similar names, or lists all known names."""
    known_names = list(known_names)
    return _suggest(name, known_names) or f"known: {', '.join(known_names) or 'none'}"


def which_setting(key: str, known_names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown setting: it suggests similar settings or says where to look."""
    return _suggest(key, list(known_names)) or "`esper-ab init` writes a file with all settings"


def _suggest(name: str, known_names: list[str]) -> str:
    """Suggest the known names with the same last part or, if there are none, those with similar spelling."""
    last_part = name.rpartition(".")[2]
    same_last = [key for key in known_names if key.rpartition(".")[2] == last_part]
    suggestions = same_last or close_names(name, known_names, 3)
    if not suggestions:
        return ""
    return f"did you mean {' or '.join(suggestions)}?"


def close_names(name: str, known_names: Iterable[str], most_names: int) -> list[str]:
    """Return the known names that are spelled like `name`, the closest first; upper and lower case count as one."""
    by_folded = {known_name.casefold(): known_name for known_name in known_names}
    folded_name = name.casefold()
    if folded_name in by_folded:
        return [by_folded[folded_name]]
    return [by_folded[match] for match in difflib.get_close_matches(folded_name, by_folded, n=most_names)]
