"""A short journal, and loading in the way of large ones, whatever a journal's size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from support.short_journal import write

from esper_ab.journal.fast import pool
from esper_ab.journal.load import Loaded, load


@pytest.fixture(params=[2_000, 50_000, 32 << 20])
def load_in_stretches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Loaded]:
    """Many stretches, some and one, read by this process; the smallest are of a line or two."""
    monkeypatch.setattr(pool, "usable_cores", lambda: 1)
    return partial(load, large_bytes=0, chunk_bytes=request.param)


@pytest.fixture(scope="module")
def journal_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("journal")).read_bytes()
