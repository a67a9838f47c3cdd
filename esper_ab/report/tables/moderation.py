"""The rows of a comparison's table that say whether its variance is its own or moderated."""

from __future__ import annotations

import math
from collections.abc import Iterator

from esper_ab.contracts.wording import counted
from esper_ab.verdict.comparison import Comparison


def test_name(comparison: Comparison) -> str:
    """Return the name of the paired t that decides."""
    name = "t, adjusted for device and order" if comparison.design.adjusted else "t, paired"
    return name if comparison.prior is None else f"moderated {name}"


def shared_sd(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the SD towards which that of the comparison is shrunk, if it is."""
    prior = comparison.prior
    if prior is not None:
        sd = comparison.design.size(math.sqrt(prior.variance))
        yield "SD shared by the comparisons", f"{sd}, which counts as {counted(prior.df, 'degree')} of freedom"
