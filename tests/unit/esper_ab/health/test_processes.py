"""Limits on processes are found before libraries are loaded, by what the user has and what the kernel counts."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.commands.cli import TABLE
from esper_ab.contracts.errors import UsageError
from esper_ab.health import processes
from esper_ab.health.control_groups import Allowance
from esper_ab.health.memory import LOADING

ALL = "         0          0 4294967295\n"
COUNTED = st.integers(0, 200)


def allow(monkeypatch: pytest.MonkeyPatch, *found: Allowance) -> None:
    monkeypatch.setattr(processes, "allowances", lambda: list(found))


def test_threads_of_a_user_are_counted_and_those_of_others_are_not(tmp_path: Path) -> None:
    for pid, user, threads in ((1, 0, 5), (2, 7, 3), (3, 7, 1), (4, 77, 9)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name:\tx\nUid:\t{user}\t0\t0\t0\nThreads:\t{threads}\n")
    (tmp_path / "5").mkdir()  # ended meanwhile
    assert processes.tasks_of(7, tmp_path) == 4


def test_a_thread_more_counts() -> None:
    done, before = threading.Event(), list(Path("/proc/self/task").iterdir())
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert processes.tasks_of(os.getuid(), Path("/proc")) > len(before)
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(("user", "capabilities", "users", "unbound"), [
    (0, 0, ALL, True), (7, 0, ALL, False), (7, 1 << 24, ALL, True), (7, 1 << 21, ALL, True), (7, 1 << 2, ALL, False),
    (0, (1 << 41) - 1, "0 1000 1\n", False),  # root of a user namespace is somebody else outside
])  # fmt: skip
def test_whom_the_kernel_lets_off(user: int, capabilities: int, users: str, *, unbound: bool) -> None:
    status = f"Uid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{capabilities:016x}\n"
    assert processes._is_unbound(status, users) is unbound


@given(limit=COUNTED, used=COUNTED, count=COUNTED)
def test_what_is_not_left_is_refused_and_tried_again(limit: int, used: int, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        allow(patch, Allowance("ulimit -u of user 7", limit, used), Allowance("pids.max of control group x", 999, 0))
        if max(0, limit - used) >= count:
            processes.require(count)
            processes.check(0, 0) if limit - used >= processes._BESIDE_WORKERS else None
        else:
            with pytest.raises(BlockingIOError):
                processes.require(count)
            with pytest.raises(UsageError, match=rf"{used} of {limit} are in use.*\(ulimit -u of user 7\)"):
                processes.check(count, 1)


def test_without_a_limit_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch)
    processes.require(1 << 20)
    processes.check(1 << 20, 4)
    assert processes.limited() == ""


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_command_is_refused_exactly_where_it_loads_libraries(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(processes, "blas_threads", lambda environment: 3)
    allow(monkeypatch, Allowance("pids.max of control group x", 4, 2))
    processes.refuse_few_processes(name, ("--help",))
    if name in LOADING:
        with pytest.raises(UsageError, match=f"`{name}` needs .* 2 may be started: 2 of 4 are in use"):
            processes.refuse_few_processes(name, ())
    else:
        processes.refuse_few_processes(name, ())


@pytest.mark.parametrize(("environment", "most"), [
    ({}, 63), ({"OMP_NUM_THREADS": "1"}, 0), ({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "9"}, 0),
    ({"OMP_NUM_THREADS": "two"}, 63), ({"OMP_NUM_THREADS": "0"}, 63),
])  # fmt: skip
def test_threads_of_the_library(environment: dict[str, str], most: int) -> None:
    assert processes.blas_threads(environment) == min(len(os.sched_getaffinity(0)) - 1, most)
