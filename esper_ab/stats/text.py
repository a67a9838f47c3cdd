"""Format the numbers of statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable

_LEAST_P = 1e-4  # a smaller p is printed as "< 0.0001"
_MOST_OF_P = 17  # digits, which tell any two floats apart
_MORE_DIGITS = 7  # most digits beyond those of the margin that may be added to tell two numbers apart


def digits_for(margin: float) -> int:
    """Return the number of decimals for numbers compared with `margin` > 0: 2, or more for a margin below 0.1."""
    return max(2, 1 - math.floor(math.log10(margin)))


def signed(value: float, digits: int = 2) -> str:
    """Format a difference with its sign: "+1.20", "-0.35", "0.00"."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def with_unit(number: str, unit: str) -> str:
    """Format a number with its unit, if it has one."""
    return f"{number} {unit}".rstrip()


def digits_apart(values: Iterable[float], marks: Iterable[float], least_digits: int) -> int:
    """Return the smallest number of decimals, at least `least_digits`, at which rounding moves no value onto or across
    a mark.

    A value within 10^-(least + 6) of a mark may be rounded to that mark.
    """
    resolution = 10.0 ** (1 - least_digits - _MORE_DIGITS)
    distinct_pairs = []
    marks = list(marks)
    for value in values:
        distinct_pairs += [(value, mark) for mark in marks if abs(value - mark) >= resolution]
    for digits in range(least_digits, least_digits + _MORE_DIGITS):
        if all((round(value, digits) - mark) * (value - mark) > 0.0 for value, mark in distinct_pairs):
            return digits
    return least_digits + _MORE_DIGITS


def percent(level: float) -> str:
    """Format a probability as "95 %", "98.3 %", "99.952 %"; a value below 1 is never shown as 100 %."""
    if level >= 1.0 or not 100.0 * level >= 99.95:
        digits = 3
    else:
        digits = 2 - math.floor(math.log10(1.0 - level))
    return f"{100 * level:.{digits}g} %"


def p_text(p: float) -> str:
    """Format p with a relation sign and two significant digits: "= 0.031", "< 0.0001"."""
    if p < _LEAST_P:
        return f"< {_LEAST_P:.4f}"
    if p < 0.1:
        return f"= {p:.2g}"
    return f"= {p:.2f}"


def p_beside(p: float, bound: float) -> tuple[str, str]:
    """Format p, with a relation sign, and the required bound, with enough digits to show which of them is larger."""
    p_in_words = p_text(p)
    if max(p, bound) < _LEAST_P:
        p_in_words = f"= {p:.2g}"
    bound_in_words = f"{bound:.2g}"
    digits = 2
    while not _same_order(p, bound, p_in_words, bound_in_words) and digits < _MOST_OF_P:
        digits += 1
        p_in_words = f"= {p:.{digits}g}"
        bound_in_words = f"{bound:.{digits}g}"
    return p_in_words, bound_in_words


def _same_order(p: float, bound: float, p_in_words: str, bound_in_words: str) -> bool:
    """Whether the printed p is on the same side of the printed bound as p is of `bound`."""
    if p == bound:
        return True
    printed_p = float(p_in_words.split()[1])
    return (p - bound) * (printed_p - float(bound_in_words)) > 0.0
