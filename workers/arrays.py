"""Arrays of numbers by what they hold, and dataclasses of arrays that nobody who is given one may change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.measures import LARGEST_OUTCOME

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def flaw(values: Floats) -> str:
    """Return why nobody can compute with `values`, as in "is not finite"; "" where one can."""
    if not np.isfinite(values).all():
        return "is not finite"
    return "" if (np.abs(values) <= LARGEST_OUTCOME).all() else f"is beyond {LARGEST_OUTCOME:g}"


class ReadOnlyArrays:
    """Base of frozen dataclasses whose arrays become read-only views; the owners of the arrays can still write.

    numpy raises ValueError where somebody writes into one.
    """

    def __post_init__(self) -> None:
        values = vars(self)  # the dataclass is frozen, its dictionary is not
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = view = value.view()
                view.setflags(write=False)
