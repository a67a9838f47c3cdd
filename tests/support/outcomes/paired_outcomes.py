"""Paired outcomes for Hypothesis: percentages to three decimals, two to twelve pairs."""

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st

accuracies = st.floats(0.0, 100.0).map(lambda x: round(x, 3))
paired = st.lists(st.tuples(accuracies, accuracies), min_size=2, max_size=12)


def columns(rows: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return the values of both groups from rows (a, b)."""
    a, b = zip(*rows, strict=True)
    return list(a), list(b)


def varied(values: Iterable[float]) -> bool:
    """Return whether the standard deviation is larger than rounding errors."""
    return bool(np.std(list(values)) > 0.01)
