"""One pair of runs: the endpoints of two groups in one replicate. The unit of every test here."""

from __future__ import annotations

import msgspec
import numpy as np

ROUNDING = 64 * float(np.finfo(np.float64).eps)  # a deviation below this share of the values is rounding


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints a and b in percent, and the positions (lane and start order) of their runs in the block."""

    replicate: int
    a: float
    b: float
    position_a: int
    position_b: int
