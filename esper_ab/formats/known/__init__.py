"""A catalogue of file formats, one `FORMAT` per file, each recognised by what is in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from esper_ab.contracts.catalog import entry, names
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.wording import listed
from esper_ab.formats.source_table import SourceTable

_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Format:
    """A file format: how its files are recognised and read."""

    name: str  # in words for the user, with an article: "an SB3 monitor.csv"
    recognises: Callable[[Path, bytes], bool]  # the file, and its first 64 KiB
    # The tables in a file: most often one. Raises UsageError, of one line, for a damaged file.
    read: Callable[[Path], list[SourceTable]]
    # The same with a row for each item, such as an evaluation episode, where `read` has their mean; None: it has them.
    read_items: Callable[[Path], list[SourceTable]] | None = None
    general: bool = False  # any program may write it: it is asked after all others
    order: int = 1  # of the files of one run, the one with the least order has the outcome: 0 evaluations, 2 training


def format_of(file: Path) -> Format | None:
    """Return the format of a file, or None if it is unknown. Raises OSError if the file cannot be read."""
    with open_to_read(file) as opened_file:
        head = opened_file.read(_HEAD_BYTES)
    return next((file_format for file_format in _formats() if file_format.recognises(file, head)), None)


def read_file(file: Path, *, items: bool = False) -> list[SourceTable]:
    """Return the tables in a file; with `items`, a row for each item where the format has them.

    Raises UsageError, of one line, if the format is unknown or the file is damaged, and OSError if it cannot be read.
    """
    file_format = format_of(file)
    if file_format is None:
        raise UsageError(f"{file}: unknown format")
    if items and file_format.read_items is not None:
        return file_format.read_items(file)
    return file_format.read(file)


def format_words() -> str:
    """Return all formats in words, for messages."""
    return listed([file_format.name.removeprefix("an ").removeprefix("a ") for file_format in _formats()])


@cache
def _formats() -> tuple[Format, ...]:
    """Return all formats, the general ones last."""
    formats: list[Format] = [entry(__name__, name, "FORMAT") for name in names(__name__)]
    return tuple(sorted(formats, key=lambda known_format: known_format.general))
