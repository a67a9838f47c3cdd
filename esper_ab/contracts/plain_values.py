"""Values that messages and files can carry unchanged: JSON has no infinity, a path no NUL."""

from __future__ import annotations

import math
from typing import Any

import msgspec

LARGEST = 2**63 - 1  # largest integer in a message


_SHOWN_BITS = 256


def expected_instead(value: object) -> str:
    """Return a description of the expected value if messages and files cannot hold `value`; "" if they can."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a finite number"
    if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
        return "a whole number from -2^63 to 2^63 - 1"
    if isinstance(value, str):
        if "\0" in value:
            return "text without NUL"
        try:
            value.encode()
        except UnicodeEncodeError:  # bytes from a shell or a file system
            return "text in UTF-8"
    return ""


def as_text(value: object) -> str:
    """Return the value of a setting as text: text unchanged, any other value as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def whole_number(text: str) -> int | None:
    """Parse a whole number from digits; None if `text` is not all digits or the number is too large for a message."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))):
        return None
    return int(text) if int(text) <= LARGEST else None


def as_float(value: Any) -> float:
    """Convert a number to float; a whole number for which float() would raise OverflowError becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if int(value) > 0 else -math.inf


def describe_value(value: object) -> str:
    """Return a value as text for a message; a huge integer is described, because Python refuses to print it."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"one of {value.bit_length()} bits"
    return repr(value)
