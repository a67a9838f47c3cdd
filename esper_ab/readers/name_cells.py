"""Read names in the cells of a table of outcomes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.cells import LONGEST_NAME, NOTHING, cell_text

_MAY_BE_EMPTY = ("cluster", "order")  # our columns in which a row may have nothing


def locate(source: str, row: int, used_names: Mapping[str, str], column: str) -> str:
    """Return the beginning of a message about a cell; the column has the source's name."""
    return f"{source}, row {row}, column {used_names.get(column, column)}"


def read_name(cell: object, column: str, place_words: Callable[[], str]) -> str:
    """Return the name in a cell of one of our columns, "" for a missing cluster or order.

    Raises UsageError if it is empty in another column, too long or not printable; `place_words` returns the beginning
    of the message.
    """
    text = cell_text(cell)
    if not text and column not in _MAY_BE_EMPTY:
        raise UsageError(f"{place_words()}: empty, but every run needs a value here")
    if len(text) > LONGEST_NAME or not text.isprintable():
        excerpt = visible_line(text, LONGEST_NAME)
        raise UsageError(f"{place_words()}: {excerpt!r} is not a printable name of at most {LONGEST_NAME} characters")
    return blank_if_missing(text) if column in _MAY_BE_EMPTY else text


def blank_if_missing(text: str) -> str:
    """Return the text, or "" if it marks a missing value, such as "n/a"."""
    return "" if text.lower() in NOTHING else text
