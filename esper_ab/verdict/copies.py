"""Find outcomes that are copies of one another: pasted rows, a pasted group, one run under many seeds. Pure.

Two runs of different seeds seldom have equal outcomes of four or more significant digits. Equal outcomes are no copies
if they are a cap or a floor, or if chance explains them because outcomes are coarse, such as k of n successes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats

_DIGITS = 4  # significant digits from which equal outcomes are unusual
# Copies are named, or asked about, if chance gives as many of them in fewer than this share of files.
NAMED = 0.01
ASKED = 0.001
_MOST_TRIALS = 1000  # largest n of a grid k/n
_LOOKED_AT = 200  # distinct outcomes that a grid is looked for in
_WINDOW = 3  # steps within which neighbours tell how many outcomes coincide by chance
_COARSE = 8  # outcomes are too coarse to tell if one run in this many coincides with another by chance
_NEAR = 1e-4  # spread within groups, relative to the difference between them


def copies(groups: Mapping[str, ArrayLike], chance: float = NAMED) -> dict[str, Counter[float]]:
    """Return by group how often each outcome occurs that occurs several times and is a copy, without empty groups.

    `groups`: the outcomes of all groups in one task, which share a cap and a floor. Equal outcomes are no copies if
    chance gives as many of them in at least this share of files.
    """
    values_by_group = {group: floats(values) for group, values in groups.items()}
    all_outcomes = np.concatenate(list(values_by_group.values()))
    if not all_outcomes.size:
        return {}
    ends = {float(all_outcomes.min()), float(all_outcomes.max())}
    by_group = {}
    for group, values in values_by_group.items():
        repeated_counts = {value: n for value, n in _repeated(values).items() if _significant(value) >= _DIGITS}
        most_between = max((n for value, n in repeated_counts.items() if value not in ends), default=0)
        # A cap or a floor is reached more often than any other outcome.
        kept_counts = Counter(
            {value: n for value, n in repeated_counts.items() if value not in ends or n <= most_between}
        )
        equal_pairs = sum(math.comb(n, 2) for n in kept_counts.values())
        if kept_counts and _probability_by_chance(equal_pairs, values, all_outcomes) < chance:
            by_group[group] = kept_counts
    return by_group


def _repeated(values: Floats) -> Counter[float]:
    """Return how often each outcome occurs that occurs several times, in the order of their first rows."""
    distinct_values, numbers = np.unique(values, return_counts=True)
    several = distinct_values[numbers > 1]
    return Counter(values[np.isin(values, several)].tolist()) if several.size else Counter()


def equal_groups(a: ArrayLike, b: ArrayLike) -> bool:
    """True if the outcomes a, b [pairs] are equal in every pair, vary, and mostly have four significant digits."""
    x = floats(a)
    if x.size < 2 or not np.array_equal(x, floats(b)) or not np.ptp(x):
        return False
    fine_count = sum(_significant(value) >= _DIGITS for value in x.tolist())
    return 2 * fine_count >= x.size


def near_copies(a: ArrayLike, b: ArrayLike) -> bool:
    """True if the outcomes of both groups vary by less than a ten-thousandth of the difference between the groups."""
    x = floats(a)
    y = floats(b)
    if min(x.size, y.size) < 2:
        return False
    tolerance = _NEAR * abs(float(np.mean(x)) - float(np.mean(y)))
    return all(float(np.ptp(values)) < tolerance and _varies_or_is_fine(values) for values in (x, y))


def _varies_or_is_fine(values: Floats) -> bool:
    """True if the outcomes vary, or are one number of four significant digits or more."""
    return bool(np.ptp(values)) or _significant(float(values[0])) >= _DIGITS


def _significant(value: float) -> int:
    """Count the significant digits of the shortest decimal number that reads as `value`, without trailing zeros."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def _probability_by_chance(seen_pairs: int, values: Floats, all_outcomes: Floats) -> float:
    """Return the chance of `seen_pairs` or more pairs of equal `values`, on the grid of `all_outcomes`."""
    distinct_values = np.unique(values)
    occurring_values = np.unique(all_outcomes)
    spread = float(np.std(distinct_values if distinct_values.size > 1 else occurring_values))
    step = _step(occurring_values)
    pairs = math.comb(len(values), 2)
    if spread <= 0.0:
        return 1.0
    normal_count = pairs * step / (2.0 * math.sqrt(math.pi) * spread)
    expected = max(normal_count, _expected_from_neighbours(distinct_values, step, pairs))
    if expected * _COARSE >= len(values):
        return 1.0
    return _poisson_tail(seen_pairs, expected)


def _expected_from_neighbours(distinct_values: Floats, step: float, pairs: int) -> float:
    """Return how many of `pairs` pairs coincide by chance if coincidences are as frequent as gaps of a few steps."""
    if distinct_values.size < 2:
        return 0.0
    reach = np.searchsorted(distinct_values, distinct_values + (_WINDOW + 0.5) * step, side="right")
    near_pairs = float(np.sum(reach - np.arange(distinct_values.size) - 1))
    return pairs * near_pairs / math.comb(distinct_values.size, 2) / (2.0 * _WINDOW)


def _poisson_tail(seen_events: int, expected: float) -> float:
    """Return the probability of at least `seen_events` events of a Poisson distribution."""
    if seen_events > expected + 10.0 * math.sqrt(expected) + 20.0:
        return 0.0
    term = math.exp(-expected)
    probability_below = 0.0
    for number in range(seen_events):
        probability_below += term
        term *= expected / (number + 1)
    return max(0.0, 1.0 - probability_below)


def _step(distinct_values: Floats) -> float:
    """Return the step of the grid of these outcomes: 1/n of k/n successes, or that of the last decimal place."""
    sampled_values = distinct_values[:: max(1, distinct_values.size // _LOOKED_AT)]
    decimal_places = max(-int(Decimal(repr(float(value))).as_tuple().exponent) for value in sampled_values)
    for scale in (1.0, 100.0):  # fractions, percentages
        n = _trials(sampled_values / scale, 10.0**-decimal_places / scale)
        if n:
            return scale / n
    return 10.0**-decimal_places


def _trials(fractions: Floats, place: float) -> int:
    """Return the least n for which all of the fractions are k/n, rounded to the decimal `place`; 0 if there is none.

    The fractions must be so many that they do not agree with n by accident.
    """
    if fractions.min() < 0.0 or fractions.max() > 1.0:
        return 0
    for n in range(2, _MOST_TRIALS + 1):
        hits = min(1.0, n * max(place, 1e-12))
        if n * hits**fractions.size > 0.01:
            return 0
        if np.all(np.abs(fractions * n - np.round(fractions * n)) <= n * (0.5 * place + 1e-12)):
            return n
    return 0
