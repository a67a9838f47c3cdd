"""Loading of a journal in the way of large ones, whatever its size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from esper_ab.journal.load import Loaded, load


@pytest.fixture(params=[2_000, 50_000, 32 << 20])
def load_in_stretches(request: pytest.FixtureRequest) -> Callable[..., Loaded]:
    """Many stretches, some and one; the smallest are of a line or two."""
    return partial(load, large_bytes=0, chunk_bytes=request.param)
