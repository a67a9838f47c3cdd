"""Numbers in text that other programs wrote, read by the same rule in CSV files and in the results of commands."""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE
)


def plain_number(text: str) -> float:
    """Read a decimal number in ASCII digits, or nan or inf.

    Raises ValueError for all else that Python's float() takes, such as 1_0 and digits of other scripts.
    """
    plain = text.strip(" \t\r\n")
    if not _NUMBER.fullmatch(plain):
        raise ValueError(f"not a number: {text!r}")
    return float(plain)
