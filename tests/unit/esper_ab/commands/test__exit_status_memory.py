"""A limit on addresses is found before libraries are loaded, and named where something goes wrong."""

from __future__ import annotations

import pytest

from esper_ab.commands import _exit_status
from esper_ab.commands._exit_status import LEAST_BYTES, LOADING, limited, refuse_little_memory
from esper_ab.contracts.errors import UsageError


@pytest.mark.parametrize("name", sorted(LOADING))
def test_little_memory_is_refused_and_enough_is_not(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(_exit_status.resource, "getrlimit", lambda number: (LEAST_BYTES - 1, -1))
    with pytest.raises(UsageError, match=r"\(ulimit -v\), but libraries alone need"):
        refuse_little_memory(name, ())
    refuse_little_memory(name, ("--help",))
    refuse_little_memory("status", ())
    monkeypatch.setattr(_exit_status.resource, "getrlimit", lambda number: (LEAST_BYTES, -1))
    refuse_little_memory(name, ())
    assert "ulimit -v" in limited()
