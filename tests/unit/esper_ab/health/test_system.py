"""Findings about limits and socket paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from esper_ab.health import system


@pytest.mark.parametrize(
    ("soft", "levels"),
    [
        ({"NOFILE": 20000, "NPROC": -1, "CORE": 0}, ["ok", "ok", "ok"]),
        ({"NOFILE": 256, "NPROC": 100, "CORE": -1}, ["warning", "warning", "warning"]),
    ],
)
def test_limits(soft: dict[str, int], levels: list[str]) -> None:
    assert [diagnosis.level for diagnosis in system.limits(soft)] == levels


def test_a_socket_needs_a_short_path(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    assert system.socket_path(deep).level == "problem"
    assert system.socket_path(Path("/nowhere")).level == "problem"
