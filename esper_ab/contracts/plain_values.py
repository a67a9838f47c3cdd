"""Which values of a user's settings messages and files carry as they are: JSON has no infinity, a path has no NUL."""

from __future__ import annotations

import math
from typing import Any

from esper_ab.contracts.settings import LARGEST

_SHOWN_BITS = 256


def expected_instead(value: object) -> str:
    """Return what a number or a text would have to be to be carried; "" where it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a finite number"
    if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
        return "a whole number from -2^63 to 2^63 - 1"
    return _text_instead(value) if isinstance(value, str) else ""


def whole_number(text: str) -> int | None:
    """Return the number that digits write; None where they are none, or more than a message carries."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))):
        return None
    return int(text) if int(text) <= LARGEST else None


def as_float(value: Any) -> float:
    """Return a number as a float; a whole number beyond any float is infinite, not an error as float() has it."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if int(value) > 0 else -math.inf


def shown(value: object) -> str:
    """Return a value as a message shows it: Python writes no number of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"one of {value.bit_length()} bits"
    return repr(value)


def _text_instead(text: str) -> str:
    if "\0" in text:
        return "text without NUL"
    try:
        text.encode()
    except UnicodeEncodeError:  # of bytes that a shell or a file system gave
        return "text in UTF-8"
    return ""
