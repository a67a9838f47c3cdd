"""The exact sign-flip test of paired differences.

Under the null hypothesis, both signs of every difference are equally likely. The test makes no other assumption about
the distribution.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.least_pairs import smallest_p
from esper_ab.stats.statistic import Beside, Statistic
from esper_ab.stats.t_tests import differences
from esper_ab.stats.text import p_text

MAX_PAIRS = 20  # 2^20 sign patterns are enumerated; beyond that they would be sampled, which is not exact
_TIE_TOLERANCE = 1e-12  # relative to the sum of |d|: sums that differ only by the order of addition count as ties


class SignFlip(msgspec.Struct, frozen=True, kw_only=True):
    """The two-sided p over all sign patterns; None for more than MAX_PAIRS pairs, whose patterns are not enumerated."""

    pairs: int
    p: float | None
    exact: bool
    smallest_p: float  # p if all pairs agreed in sign


def sign_flip(a: ArrayLike, b: ArrayLike) -> SignFlip:
    """Return the share of the 2^pairs sign patterns of a - b [pairs] whose |sum| is at least as large as observed."""
    d = np.abs(differences(a, b))
    n = int(d.size)
    if n > MAX_PAIRS:
        return SignFlip(pairs=n, p=None, exact=False, smallest_p=smallest_p(n))
    # The sign of the first difference is kept: |sum| is the same for a pattern and its mirror image. [2^(n-1)]
    sums = d[:1]
    for size in d[1:]:
        sums = np.concatenate((sums + size, sums - size))
    observed = abs(float(np.sum(differences(a, b))))
    p = float(np.mean(np.abs(sums) >= observed - _TIE_TOLERANCE * float(np.sum(d))))
    return SignFlip(pairs=n, p=p, exact=True, smallest_p=smallest_p(n))


def _show(flip: SignFlip, _: Beside) -> str:
    return "" if flip.p is None else f"exact p {p_text(flip.p)} (smallest reachable: p {p_text(flip.smallest_p)})"


def _caveats(flip: SignFlip, beside: Beside) -> Iterator[str]:
    if flip.p is None:
        yield f"The sign-flip p is not enumerated for {flip.pairs} pairs."
    elif beside.undecided and flip.p <= beside.alpha:
        yield (
            f"The exact sign-flip test alone would reject at {beside.alpha:.3g} (p {p_text(flip.p)}); it is not the "
            "declared test, and choosing a test afterwards raises the error rate."
        )


def _contradicts(flip: SignFlip, beside: Beside) -> str:
    if flip.p is None or not beside.claimed or flip.p <= beside.alpha:
        return ""
    return (
        f"The exact sign-flip test does not support this at {beside.alpha:.3g} (p {p_text(flip.p)}): the verdict leans "
        "on normally distributed differences."
    )


STATISTIC = Statistic[SignFlip](
    label="sign flip", kind="test", place=1, compute=lambda a, b, _: sign_flip(a, b), show=_show, caveats=_caveats,
    contradicts=_contradicts,
)
