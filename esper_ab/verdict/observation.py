"""One run, with its outcome. Type only."""

from __future__ import annotations

import msgspec


class Observation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run."""

    group: str
    replicate: str  # the seed or pair, as the source writes it; if it has neither, the run
    task: str = ""  # or the cell of a grid; "": the source has none
    value: float | None  # the outcome; None: the run was lost
    cancelled: bool = False  # lost because a run of another group in its replicate failed, not through its own failure
    run: str = ""  # its name; "": the source has none
    cluster: str = ""  # "": in none
    order: int | None = None  # its place in the order in which runs were done; None: not known
    place: int | None = None  # device and start order in its block; None: not known
    row: int = 0  # of the source, for messages
