"""Numbers as people and spreadsheets write them, with a decimal comma, thousands or a percent sign, become plain. Pure.

A column is rewritten only if each of its cells that is not empty reads as such a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from esper_ab.formats.cells import NOTHING

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}([. '\u00a0\u202f]\d{3})+),\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_ONLY_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 is 1.234 or 1234
_GROUPING = re.compile(r"[. '\u00a0\u202f]")
_PERCENT = re.compile(r"\s*%\Z")


def as_plain_numbers(name: str, cells: list[str], *, comma_is_decimal: bool) -> tuple[list[str], str]:
    """Return the cells of column `name`, and a sentence that says how they were read; "" if they are as they were.

    `comma_is_decimal`: 1,234 is 1.234, as in files whose columns are separated by semicolons; otherwise such a column
    is left as it is, because it may mean thousands.
    """
    text = "\n".join(cells)
    percent = "%" in text
    if not percent and "," not in text:
        return cells, ""
    filled_cells = {place: cell.strip() for place, cell in enumerate(cells) if cell.strip().lower() not in NOTHING}
    cells_without = {place: _PERCENT.sub("", cell) for place, cell in filled_cells.items()}
    if percent and any(cell == filled_cells[place] for place, cell in cells_without.items()):
        return cells, ""  # 0.7 and 70% in one column: nobody knows
    plain_numbers = _plain(list(cells_without.values()), comma_is_decimal=comma_is_decimal)
    if plain_numbers is None:
        return cells, ""
    cells_read = list(cells)
    for place, cell in zip(cells_without, plain_numbers, strict=True):
        cells_read[place] = cell
    first_place = next((place for place in filled_cells if cells_read[place] != cells[place]), None)
    if first_place is None:
        return cells, ""
    number_words = cells_read[first_place]
    if percent:
        number_words += " (percent)"
    return cells_read, f"Column {name}: {cells[first_place].strip()} is read as {number_words}."


def _replace_comma(cell: str) -> str:
    """Return a number with a decimal comma as one with a decimal point; others as they are."""
    if "," in cell:
        return _GROUPING.sub("", cell).replace(",", ".")
    return cell


def _plain(cells: Sequence[str], *, comma_is_decimal: bool) -> list[str] | None:
    """Return the numbers with a decimal point and without thousands; None if they are not clearly numbers."""
    cells_with_comma = [cell for cell in cells if "," in cell]
    if all(_PLAIN.fullmatch(cell) for cell in cells if "," not in cell):
        decimal = all(map(_DECIMAL_COMMA.fullmatch, cells_with_comma))
        if decimal and (comma_is_decimal or not all(map(_ONLY_THOUSANDS.fullmatch, cells_with_comma))):
            return [_replace_comma(cell) for cell in cells]
        if all(map(_THOUSANDS.fullmatch, cells_with_comma)) and any("." in cell for cell in cells_with_comma):
            return [cell.replace(",", "") for cell in cells]
        if not cells_with_comma:
            return list(cells)
    return None
