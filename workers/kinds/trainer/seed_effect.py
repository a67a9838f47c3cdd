"""Whether a trainer's seed matters, from the results of a few seeds and of one seed that was run again. Pure.

A trainer that ignores its seed may still give different numbers, because sums of floating-point numbers depend on
their order. So equality is not the test: the seed matters if outcomes differ by more than rounding, or if some number
differs much more between seeds than between runs of one seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

# The numbers of one run by name: those of a metric at each point, and of the outcome also those of the evaluation.
Numbers = Mapping[str, tuple[float, ...]]

# Sums of single-precision numbers in another order differ by 1e-7 to 1e-5 of their size. Outcomes of two seeds usually
# differ by more: one image of a test set of 10,000 is 1e-4 of an accuracy.
ROUNDING = 1e-4
# Two distances between a few runs differ by such a factor even if the runs vary alike.
_BY_CHANCE = 10.0


def relative_difference(runs: Sequence[Numbers], name: str) -> float:
    """Return the largest difference in a number between runs, relative to its size; 0.0 if it is equal to the bit."""
    return max(_relative_range(values) for values in zip(*(numbers[name] for numbers in runs), strict=True))


def _relative_range(values: Sequence[float]) -> float:
    if len(set(map(repr, values))) == 1:
        return 0.0
    if not all(map(math.isfinite, values)):
        return math.inf
    if any(values):
        return (max(values) - min(values)) / max(map(abs, values), default=1.0)
    return 0.0


def outcome_repeats(repeats: Sequence[Numbers], outcome: str) -> bool:
    """Whether the outcomes of runs of one seed are equal up to rounding."""
    return relative_difference(repeats, outcome) <= ROUNDING


def is_in_doubt(seeds: Sequence[Numbers], repeats: Sequence[Numbers], outcome: str) -> bool:
    """Whether nothing in these runs shows that the seed matters.

    `seeds`: runs of different seeds. `repeats`: runs of one seed. If one seed repeats to the bit, the seed
    causes every difference between seeds. If outcomes differ by more than rounding, as with an unseeded evaluation,
    runs are independent even if runs of one seed differ as much. Numbers that are all 0 or 1 leave no doubt, because
    those of a few seeds are often equal.
    """
    if all(value in (0.0, 1.0) for numbers in (*seeds, *repeats) for values in numbers.values() for value in values):
        return False
    matters = any(
        relative_difference(seeds, name) > _BY_CHANCE * relative_difference(repeats, name) for name in seeds[0]
    )
    return relative_difference(seeds, outcome) <= ROUNDING and not matters


def refuse_no_effect(seeds: Sequence[Numbers], repeats: Sequence[Numbers], outcome: str, remedy: str) -> None:
    """Raise ValueError if the seed does not matter; the message ends with `remedy`."""
    if not is_in_doubt(seeds, repeats, outcome):
        return
    n_seeds = len(seeds)
    first_outcome = seeds[0][outcome][-1]
    if relative_difference(seeds, outcome) == 0.0:
        finding = f"{n_seeds} seeds gave the same result ({outcome} {first_outcome:g})"
    else:
        finding = (
            f"{n_seeds} seeds differ no more than one seed run {len(repeats)} times, and only by rounding ({outcome} "
            f"{_span(seeds, outcome)}, and {_span(repeats, outcome)})"
        )
    raise ValueError(f"{finding}, so every seed would repeat the same run; {remedy}")


def _span(runs: Sequence[Numbers], outcome: str) -> str:
    values = [numbers[outcome][-1] for numbers in runs]
    return f"{min(values):.7g} to {max(values):.7g}"
