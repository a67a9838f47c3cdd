"""What the machine may not afford is said and asked for; nothing is asked for what it can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.execution.job import excesses
from esper_ab.health.processor import Room
from esper_ab.plan.estimate import Estimate

DAY_S, GIB = 24 * 3600.0, 2**30


def cost(duration_s: float, memory_bytes: int) -> Estimate:
    return Estimate(duration_s=duration_s, start_up_s=1.0, step_s=1.0, memory_bytes=memory_bytes, basis="guessed")


@given(st.floats(0, 10 * DAY_S), st.integers(0, 64 * GIB), st.integers(1, 64 * GIB), st.sampled_from(["", "limit x"]))
def test_it_is_said_exactly_where_it_exceeds(duration_s, needed, room, limit):
    said = excesses(cost(duration_s, needed), Room(room, limit))
    assert len(said) == (duration_s > DAY_S) + (needed > room)
    assert any("days" in one for one in said) == (duration_s > DAY_S)
    assert any("GiB are available by limit x" in one for one in said) == (bool(limit) and needed > room)


def test_unknown_memory_is_no_excess():
    assert excesses(cost(1.0, 64 * GIB), Room(0, "")) == ()
    assert len(excesses(cost(1.0, 64 * GIB), Room(0, "limit x"))) == 1, "a limit that is used up leaves nothing"


@pytest.mark.parametrize(("stdin", "flags", "status"), [("</dev/null", (), 2), ("<&-", ("--dry-run",), 0)])
def test_without_a_terminal_it_is_refused_and_the_flag_named(
    tmp_path: Path, stdin: str, flags: tuple[str, ...], status: int
):
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {stdin}', "sh", sys.executable, "-m", "esper_ab.launch",
         "--groups", "shaped,simplified", "--task", "synthetic", "--episodes", "1", "--steps", "5",
         "--n-envs", "100000", "--eval-episodes", "4", "--output-dir", str(tmp_path / "x"),
         "--no-telemetry", *flags],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "warning: it is estimated to need " in done.stderr
    assert ("--yes starts it anyway" in done.stderr) == (status == 2)
    assert not (tmp_path / "x").exists()
