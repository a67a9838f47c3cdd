"""When outcomes or differences are one number but for rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.least_pairs import LEAST_PAIRS

_SAME = 1e-10  # relative to the outcomes: far above the rounding error of a mean, below any measured step
_ROUNDED = 2.0**-20  # relative to the outcomes: eight units in the last place of a 32-bit float
_OF_DIFFERENCE = 1e-3  # relative to a difference: a smaller one may itself be rounding, as that of near copies
_TINY = float(np.finfo(np.float64).tiny)  # smaller numbers have fewer digits
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # a deviation this small, relative to the values, is rounding


def resolution(*outcomes: ArrayLike) -> float:
    """Return the distance within which outcomes [runs], or the differences of two groups [pairs], count as equal.

    It is relative to the lower quartile of the sizes of runs, or of the larger outcome of each pair, without zeros. So
    a few large outcomes, such as penalties, do not make all others equal.
    """
    sizes = np.abs(np.vstack(outcomes)).max(axis=0, initial=0.0)
    sizes = sizes[sizes > 0.0]
    if sizes.size:
        quartile = (sizes.size - 1) // 4
        return max(_TINY, _SAME * float(np.partition(sizes, quartile)[quartile]))
    return 0.0


def rounding(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return the width [pairs] within which the difference of each pair of a, b [pairs] counts as equal to another one.

    It is `resolution` or, for outcomes computed with 32-bit floats, 2^-20 of the pair's larger outcome; of the latter
    at most a thousandth of the difference, so that near copies, whose differences are that small, keep their spread.
    """
    x = floats(a)
    y = floats(b)
    outcome_rounding = _ROUNDED * np.maximum(np.abs(x), np.abs(y))
    difference_rounding = _OF_DIFFERENCE * np.abs(x - y)
    return np.maximum(resolution(x, y), np.minimum(outcome_rounding, difference_rounding))


def alike(a: ArrayLike, b: ArrayLike) -> int:
    """Return the size of the largest set of differences of a, b [pairs] that are one amount but for `rounding`."""
    if not np.size(a):
        return 0
    differences = floats(np.subtract(a, b))
    half_width = rounding(a, b) / 2.0
    lows = np.sort(differences - half_width)
    highs = np.sort(differences + half_width)
    ended_counts = np.searchsorted(highs, lows, side="left")  # intervals that end before each low
    return int(np.max(np.arange(1, lows.size + 1) - ended_counts))


def steady(outcomes: ArrayLike, difference: float) -> bool:
    """True if the outcomes [runs > 0] of a group are one number but for rounding.

    Rounding of 32-bit floats is at most a thousandth of the `difference` to the other group, as in `rounding`.
    """
    values = floats(outcomes)
    float_rounding = min(_ROUNDED * float(np.max(np.abs(values))), _OF_DIFFERENCE * abs(difference))
    return bool(np.ptp(values) <= max(resolution(values), float_rounding))


def commonest(values: ArrayLike, largest_span: float) -> tuple[int, float]:
    """Return the size and the least value of the largest set of `values` [n > 0] that span at most `largest_span`."""
    ordered_values = np.sort(floats(values))
    past_last = np.searchsorted(ordered_values, ordered_values + largest_span, side="right")
    sizes = past_last - np.arange(ordered_values.size)
    largest_index = int(np.argmax(sizes))
    return int(sizes[largest_index]), float(ordered_values[largest_index])


def rests_on_few(outcomes: ArrayLike) -> bool:
    """True if more than half of the outcomes [runs] of two groups are equal and fewer than LEAST_PAIRS different."""
    values = floats(outcomes)
    most_values, _ = commonest(values, resolution(values))
    return 2 * most_values > values.size and values.size - most_values < LEAST_PAIRS


def degenerate(a: ArrayLike, b: ArrayLike) -> bool:
    """True if no test of the differences of a, b [pairs] is possible.

    This is the case if more than half of the differences are equal and fewer than LEAST_PAIRS have a different value,
    because a claim would then depend on these few, or on a standard deviation of 0. Differences that vary only by
    `rounding` count as equal.
    """
    return rests_on_others(alike(a, b), np.size(a))


def rests_on_others(alike_ones: int, count: int) -> bool:
    """True if more than half of `count` numbers are equal, and so few are different that a claim would rest on them."""
    return count > 1 and 2 * alike_ones > count and count - alike_ones < LEAST_PAIRS
