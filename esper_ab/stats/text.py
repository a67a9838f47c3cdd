"""How the numbers of statistics are written."""

from __future__ import annotations

import math
from collections.abc import Iterable

_MOST_DIGITS, _SAME = 9, 1e-8


def digits_for(margin: float) -> int:
    """Return the decimals of numbers where `margin` > 0 matters: 2, and one beyond its first digit below 0.1."""
    return max(2, 1 - math.floor(math.log10(margin)))


def signed(value: float, digits: int = 2) -> str:
    """Write a difference with its sign: "+1.20", "-0.35", "0.00"."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def with_unit(number: str, unit: str) -> str:
    """Write a number with its unit, if it has one."""
    return f"{number} {unit}".rstrip()


def digits_apart(values: Iterable[float], marks: Iterable[float], least: int) -> int:
    """Return the fewest decimals, `least` or more, at which rounding puts no value on or across a mark.

    A value that is a mark but for rounding errors may stay on it.
    """
    apart = [(value, mark) for value in values for mark in marks if abs(value - mark) >= _SAME]
    return next(
        (
            digits
            for digits in range(least, _MOST_DIGITS)
            if all((round(value, digits) - mark) * (value - mark) > 0.0 for value, mark in apart)
        ),
        _MOST_DIGITS,
    )


def percent(level: float) -> str:
    """Write a probability as "95 %", "98.3 %"."""
    return f"{100 * level:.3g} %"


def p_text(p: float) -> str:
    """Write p, with its relation, in the digits that matter: "= 0.031", "< 0.0001"."""
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}" if p < 0.1 else f"= {p:.2f}"


def counted(count: int, noun: str) -> str:
    """Write "1 run", "6 runs", "0 runs"; `noun` is the singular of a regular plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def n_pairs(count: int) -> str:
    """Write "1 pair", "6 pairs"."""
    return counted(count, "pair")
