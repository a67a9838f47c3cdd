"""The text of a CSV file, decoded, one line after the other."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TextIO

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.formats.binary_files import refuse_binary

_LARGEST_BYTES = 64 * 2**20
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of Excel's "Unicode text"


def lines_of(file: Path) -> TextIO:
    """Return the text of the file without its byte-order mark, to be read line by line.

    Ends of lines are as in the file. Raises UsageError if it is binary or neither UTF-8 nor marked UTF-16, and OSError
    if it cannot be read or is larger than 64 MiB.
    """
    content = read_regular(file, _LARGEST_BYTES)
    refuse_binary(file, content)
    encoding = encoding_of(content)
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        row = content[: error.start].count(b"\n") + 1
        raise UsageError(
            f"{file}, row {row}: byte {error.start} is not valid {encoding.removesuffix('-sig').upper()}"
        ) from None
    return io.TextIOWrapper(io.BytesIO(content), encoding=encoding, newline="")


def encoding_of(content: bytes) -> str:
    """Return the encoding of a text, from its byte-order mark."""
    return "utf-16" if content.startswith(_UTF16_MARKS) else "utf-8-sig"
