"""The exact sign-flip test of paired differences."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from numpy.typing import ArrayLike

from esper_ab.stats.exact_signs import MAX_PAIRS, signs_p
from esper_ab.stats.least_pairs import smallest_p
from esper_ab.stats.paired_difference import differences
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import p_text


class SignFlip(msgspec.Struct, frozen=True, kw_only=True):
    """The two-sided p over all sign patterns; None for more than MAX_PAIRS pairs, whose patterns are not enumerated."""

    pairs: int
    p: float | None
    exact: bool
    smallest_p: float  # p if all pairs agreed in sign


def sign_flip(a: ArrayLike, b: ArrayLike) -> SignFlip:
    """Return the share of the 2^pairs sign patterns of a - b [pairs] whose |sum| is at least as large as observed."""
    d = differences(a, b)
    n = int(d.size)
    p = float(signs_p(d)) if n <= MAX_PAIRS else None
    return SignFlip(pairs=n, p=p, exact=p is not None, smallest_p=smallest_p(n))


def _show(flip: SignFlip, _: ComparisonContext) -> str:
    if flip.p is None:
        return ""
    return f"exact p {p_text(flip.p)} (smallest reachable: p {p_text(flip.smallest_p)})"


def _caveats(flip: SignFlip, context: ComparisonContext) -> Iterator[str]:
    if flip.p is None:
        yield f"The sign-flip p is not enumerated for {flip.pairs} pairs."
    elif context.undecided and flip.p <= context.alpha:
        yield (
            f"The exact sign-flip test alone would reject at {context.alpha:.3g} (p {p_text(flip.p)}); it is not the "
            "declared test, and choosing a test afterwards raises the error rate."
        )


def _contradicts(flip: SignFlip, context: ComparisonContext) -> str:
    if flip.p is None or not context.claimed or flip.p <= context.alpha:
        return ""
    return (
        f"The exact sign-flip test does not support this at {context.alpha:.3g} (p {p_text(flip.p)}): the verdict "
        "leans on normally distributed differences."
    )


STATISTIC = Statistic[SignFlip](
    label="sign flip",
    kind="test",
    place=1,
    compute=lambda a, b, _: sign_flip(a, b),
    show=_show,
    caveats=_caveats,
    contradicts=_contradicts,
)
