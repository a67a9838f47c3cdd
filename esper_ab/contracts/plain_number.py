"""Numbers in text that other programs wrote, read by the same rule in CSV files and in the results of commands."""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE
)
_BOOLEANS = {"true": 1.0, "false": 0.0}  # by lower-case text


def number_or_boolean(text: str) -> float:
    """Read an outcome: a number as `plain_number` reads it, or 1 and 0 for true and false, in any case of letters.

    Raises ValueError for all else.
    """
    boolean = _BOOLEANS.get(text.strip(" \t\r\n").lower())
    return plain_number(text) if boolean is None else boolean


def plain_number(text: str) -> float:
    """Read a decimal number in ASCII digits, or nan or inf.

    Raises ValueError for all else that Python's float() takes, such as 1_0 and digits of other scripts.
    """
    plain_text = text.strip(" \t\r\n")
    if not _NUMBER.fullmatch(plain_text):
        raise ValueError(f"not a number: {text!r}")
    return float(plain_text)
