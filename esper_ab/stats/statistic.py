"""The type of a descriptive statistic of paired outcomes: its formula, texts and caveats. Types only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.text import signed, with_unit

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class ComparisonContext:
    """The comparison with which a statistic is shown."""

    a: str
    b: str
    pairs: int
    alpha: float  # the comparison's share of alpha
    bound: float  # p that the last look required; alpha if it required an e-value
    claimed: bool  # the verdict claims a difference, by a t-test
    undecided: bool  # INCONCLUSIVE, and neither audit nor losses are the reason
    unit: str = ""  # of a difference; "": none
    digits: int = 2  # decimals of a difference
    paired: bool = True  # False: runs share no randomness, so they form no pairs, or arbitrary ones

    def difference(self, value: float) -> str:
        """Format a difference with sign and unit: "+1.20 points"."""
        return with_unit(signed(value, self.digits), self.unit)


@dataclass(frozen=True, kw_only=True)
class Statistic(Generic[Result]):
    """One descriptive statistic. The name of its file is the key of its result in verdict.json."""

    label: str  # of its row in the report
    kind: Literal["test", "effect"]  # tests are listed before sizes of the effect
    place: int  # sort key within its kind, ascending
    compute: Callable[[Floats, Floats, Generator], Result | None]  # from a, b [pairs >= 2]
    show: Callable[[Result, ComparisonContext], str]  # its value with interval, in words; "": no row
    caveats: Callable[[Result, ComparisonContext], Iterable[str]] = lambda *_: ()  # sentences beside its value
    # A sentence that questions the verdict; "": none.
    contradicts: Callable[[Result, ComparisonContext], str] = lambda *_: ""
    orders: bool = False  # counts how often a is better; where lower is better, computed from -a and -b
    of_equal: bool = False  # whether it means anything if a and b are equal in every pair
    of_paired: bool = True  # ... if runs form pairs
    of_unpaired: bool = False  # ... if runs form no pairs, and the groups may differ in number
    of_binary: bool = True  # ... if every outcome is 0 or 1

    def of(self, a: ArrayLike, b: ArrayLike, rng_seed: int, *, lower: bool = False) -> Result | None:
        """Compute the statistic from outcomes a, b [pairs]; None if it is undefined.

        `lower` says whether lower outcomes are better. Each statistic has its own random generator, so that its result
        does not depend on which other statistics exist.
        """
        x = floats(a)
        y = floats(b)
        if x.size < 2 or not y.size or (np.array_equal(x, y) and not self.of_equal):
            return None
        if self.orders and lower:
            return self.compute(-x, -y, np.random.default_rng(rng_seed))
        return self.compute(x, y, np.random.default_rng(rng_seed))
