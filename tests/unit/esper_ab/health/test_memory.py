"""Limits on a process's memory are found before libraries are loaded, and named where something goes wrong."""

from __future__ import annotations

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.health import memory
from esper_ab.health.memory import LIMITS, LOADING, limited, refuse_little_memory


def limit_to(monkeypatch: pytest.MonkeyPatch, which: int, soft: int) -> None:
    monkeypatch.setattr(memory.resource, "getrlimit", lambda number: (soft if number == which else -1, -1))


@pytest.mark.parametrize("which", LIMITS)
@pytest.mark.parametrize("name", sorted(LOADING))
def test_little_memory_is_refused_and_enough_is_not(monkeypatch: pytest.MonkeyPatch, which: int, name: str) -> None:
    least = LIMITS[which].least_bytes
    limit_to(monkeypatch, which, least - 1)
    with pytest.raises(UsageError, match=rf"\({LIMITS[which].command}\), and libraries alone need"):
        refuse_little_memory(name, ())
    refuse_little_memory(name, ("--help",))
    refuse_little_memory("status", ())
    limit_to(monkeypatch, which, least)
    refuse_little_memory(name, ())
    assert LIMITS[which].command in limited()
