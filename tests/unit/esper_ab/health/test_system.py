"""Findings about limits of a process."""

from __future__ import annotations

import pytest

from esper_ab.health import system
from esper_ab.health.memory import LEAST_BYTES


@pytest.mark.parametrize(("soft", "levels"), [
    ((20000, 4096, -1), ["ok", "ok"]), ((256, 64, LEAST_BYTES), ["warning", "warning"]),
    ((-1, -1, LEAST_BYTES - 1), ["ok", "ok", "problem"]),
])  # fmt: skip
def test_limits(soft: tuple[int, int, int], levels: list[str]) -> None:
    """A problem is found exactly where commands are refused."""
    assert [diagnosis.level for diagnosis in system.limits(*soft)] == levels
