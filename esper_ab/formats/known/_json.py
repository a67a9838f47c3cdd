"""JSON of other programs, decoded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import open_to_read, read_regular
from esper_ab.contracts.unreadable import UNREADABLE

MOST_BYTES = 256 * 2**20
_LONGEST_LINE_BYTES = 16 * 2**20


def decode(origin: str, content: bytes | str) -> Any:
    """Return the value. NaN and Infinity, which Python writes, are allowed.

    Raises UsageError, which begins with `origin`.
    """
    try:
        return msgspec.json.decode(content)
    except (*UNREADABLE, RecursionError):
        pass
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{origin} is not valid JSON: {error}") from None


def read_json(file: Path) -> Any:
    """Return the value in a file of at most 256 MiB. Raises UsageError, and OSError if it cannot be read."""
    return decode(str(file), read_regular(file, MOST_BYTES).removeprefix(b"\xef\xbb\xbf"))


def read_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line that is not blank; an incomplete last line is left out.

    Raises UsageError if a line is no JSON object, and OSError if the file cannot be read.
    """
    with open_to_read(file) as opened_file:
        number = 0
        while line := opened_file.readline(_LONGEST_LINE_BYTES):
            number += 1
            if not line.endswith(b"\n") and len(line) == _LONGEST_LINE_BYTES:
                raise UsageError(f"{file}, row {number}: the line is longer than {_LONGEST_LINE_BYTES >> 20} MiB")
            if not line.strip():
                continue
            try:
                record = decode(f"{file}, row {number}", line)
            except UsageError:
                if line.endswith(b"\n"):
                    raise
                return  # a crash, or a program that still writes, has cut the line
            if not isinstance(record, dict):
                raise UsageError(f"{file}, row {number}: expected a JSON object, not {type(record).__name__}")
            yield number, record
