"""Findings about limits and socket paths."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.health import processes, system
from esper_ab.health.control_groups import Allowance
from esper_ab.health.memory import LIMITS


@pytest.mark.parametrize(
    ("soft", "levels"),
    [
        ({"NOFILE": 20000, "CORE": 0}, ["ok", "ok"]),
        ({"NOFILE": 256, "CORE": -1}, ["warning", "warning"]),
    ],
)
def test_limits(soft: dict[str, int], levels: list[str]) -> None:
    assert [diagnosis.level for diagnosis in system.limits(soft)] == levels


def test_a_socket_needs_a_short_path(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    assert system.socket_path(deep).level == "problem"
    assert system.socket_path(Path("/nowhere")).level == "problem"


@given(st.integers(-1, 4 << 30), st.integers(-1, 4 << 30))
def test_a_problem_is_found_exactly_where_commands_are_refused(addresses: int, data: int) -> None:
    soft = {resource.RLIMIT_AS: addresses, resource.RLIMIT_DATA: data}
    levels = [one.level for one in system.memory_limits(soft)]
    assert levels == ["problem" if 0 <= soft[n] < LIMITS[n].least_bytes else "ok" for n in LIMITS]


@pytest.mark.parametrize(("left", "level"), [(0, "problem"), (11, "problem"), (63, "warning"), (64, "ok")])
def test_a_limit_on_processes(monkeypatch: pytest.MonkeyPatch, left: int, level: str) -> None:
    monkeypatch.setattr(processes, "blas_threads", lambda environment: 1)
    found = system.process_limit(Allowance("ulimit -u of user 7", 100, 100 - left))
    assert found.level == level
    assert f"{100 - left} of 100 are in use, threads included (ulimit -u of user 7)" in found.what


def test_no_limit_on_processes() -> None:
    assert system.process_limit(None).level == "ok"
