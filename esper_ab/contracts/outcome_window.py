"""Which part of a run its outcome summarises: the evaluation of the final policy, or the end of training. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

OutcomeOver = Literal["evaluation", "last-tenth", "last-third", "curve-mean"]

_PARTS = {"last-tenth": 10, "last-third": 3, "curve-mean": 1}  # the last of so many equal parts
WINDOWS = tuple(_PARTS)  # of training, the shortest first


def in_window(curve: Sequence[float], window: str) -> Sequence[float]:
    """Return the last values of a curve that belong to a window of training, rounded up to whole values."""
    count = -(-len(curve) // _PARTS[window])
    return curve[len(curve) - count :]
