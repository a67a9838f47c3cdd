"""Read the cells of a table of outcomes: names and numbers as a user would type them. Pure."""

from __future__ import annotations

import math
from numbers import Integral, Real

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import LARGEST_OUTCOME, countable
from esper_ab.contracts.plain_number import number_or_boolean
from esper_ab.contracts.visible import visible_line

LONGEST_NAME = 60  # characters of a group, a seed, a task and other names
NOTHING = ("", "nan", "<na>", "na", "n/a", "null", "none")  # lower-case texts of a missing outcome, cluster or order
_MISSING = ("nan", "<NA>", "NaT")  # how data frames show a missing cell


def outcome_of(cell: object, place: str) -> float | None:
    """Return the outcome in a cell: True is 1 and False is 0; None for an empty cell, which marks a failed run."""
    text = cell_text(cell)
    if text.lower() in NOTHING:
        return None
    try:
        value = number_or_boolean(text) + 0.0  # turns -0.0 into 0.0
    except ValueError:
        excerpt = visible_line(text, 40)
        raise UsageError(
            f"{place}: expected a number, such as 71.25, not {excerpt!r}; leave it empty for a failed run"
        ) from None
    if not countable(value):
        reason = f"beyond {LARGEST_OUTCOME:g}" if math.isfinite(value) else "not finite"
        raise UsageError(f"{place}: {text} is {reason}; leave it empty for a failed run")
    return value


def cell_text(cell: object) -> str:
    """Return a cell as a user would type it: a seed that is stored in a data frame as the float 3.0 gives "3"."""
    if cell is None or (not isinstance(cell, str) and str(cell) in _MISSING):
        return ""
    if isinstance(cell, Real) and not isinstance(cell, Integral):
        value = float(cell)
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        return repr(value)
    return str(cell).strip()
