"""One pair of runs: the endpoints of two groups in one replicate. The unit of every test here."""

from __future__ import annotations

import msgspec


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints a and b in percent; positions (lane and start order) that their runs took in the block."""

    replicate: int
    a: float
    b: float
    position_a: int
    position_b: int
