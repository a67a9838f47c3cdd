"""The exact sign-flip test: does it support a verdict that leans on normally distributed differences?"""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.stats.sign_flip import SignFlip, sign_flip
from esper_ab.stats.statistic import Beside, Statistic
from esper_ab.stats.text import p_text


def _show(flip: SignFlip, _: Beside) -> str:
    return "" if flip.p is None else f"exact p {p_text(flip.p)} (smallest reachable: p {p_text(flip.smallest_p)})"


def _caveats(flip: SignFlip, beside: Beside) -> Iterator[str]:
    if flip.p is None:
        yield f"The sign-flip p is not enumerated for {flip.pairs} pairs."
    elif beside.claimed and flip.p > beside.alpha:
        yield (
            f"The exact sign-flip test does not support this at {beside.alpha:.3g} (p {p_text(flip.p)}): the verdict "
            "leans on normally distributed differences."
        )
    elif beside.undecided and flip.p <= beside.alpha:
        yield (
            f"The exact sign-flip test alone would reject at {beside.alpha:.3g} (p {p_text(flip.p)}); it is not the "
            "declared test, and a test chosen afterwards raises the false alarms."
        )


STATISTIC = Statistic[SignFlip](
    label="sign flip", kind="test", place=1, compute=lambda a, b, _: sign_flip(a, b), show=_show, caveats=_caveats
)
