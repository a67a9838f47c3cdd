"""Commands of a user, or in a control group, with few processes: they work, or say so in a line; no library ends them.

root is not counted against `ulimit -u`, so these are commands of another user, which only root can be.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.children import environment
from support.groups import few_processes, inside

USER = 65_432  # nobody's: what others of a name have started does not count
PATIENCE_S = 280  # of a machine that may be crowded
LANES = 2
LAUNCH = ("launch", "--groups", "wait,random", "--task", "synthetic", "--devices", "cpu:0,cpu:1")
TINY = ("--episodes", "1", "--steps", "2", "--replicates", "1", "--quiet")


@contextmanager
def as_another(folder: Path, limit: int) -> Iterator[list[str]]:
    """Read what root may read, write what that user may, and no more."""
    if os.getuid() or not (shutil.which("setpriv") and shutil.which("prlimit")):
        pytest.skip("only root can be another user, by setpriv and prlimit")
    folder.chmod(0o777)
    may = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
    user = ("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *may)
    yield ["prlimit", f"--nproc={limit}", *user, "env", f"HOME={folder}", "PYTHONDONTWRITEBYTECODE=1"]


@contextmanager
def in_a_group(folder: Path, limit: int) -> Iterator[list[str]]:
    with few_processes(limit) as group:
        yield inside(group, [])


def called(within: list[str], folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """`esper-ab` with two cores, whatever the machine has: the limits that are tried are those of its libraries."""
    line = [*within, sys.executable, "-m", "esper_ab.commands.cli", *args]
    return subprocess.run(
        line, cwd=folder, env=environment(OMP_NUM_THREADS="2"), capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for above in tmp_path.parents[:3]:  # pytest's own are for their user alone
        above.chmod(above.stat().st_mode | 0o055)
    return tmp_path


LIMITED = pytest.mark.parametrize("limited", [as_another, in_a_group])


@LIMITED
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_a_command_that_loads_libraries_is_refused_in_a_line(folder, limited, limit):
    with limited(folder, limit) as within:
        ended = called(within, folder, *LAUNCH)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "`launch` needs 4 more processes and threads" in ended.stderr
    assert ("ulimit -u of user" if limited is as_another else "pids.max of control group") in ended.stderr
    assert not list(folder.glob("experiments/*"))


@LIMITED
def test_a_command_that_loads_none_works_under_the_same_limit(folder, limited):
    with limited(folder, 1) as within:
        assert called(within, folder, "list", ".").returncode == 0
        assert called(within, folder, "launch", "--help").returncode == 0


@LIMITED
def test_lanes_that_cannot_have_their_workers_are_refused_with_the_plan(folder, limited):
    with limited(folder, 14) as within:
        ended = called(within, folder, *LAUNCH, *TINY)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith(f"error: {LANES} lanes need 13 more processes and threads, and ")
    assert not list(folder.glob("experiments/*")), "nothing was begun"


@pytest.mark.slow
@LIMITED
def test_what_is_not_refused_trains(folder, limited):
    with limited(folder, 15) as within:
        ended = called(within, folder, *LAUNCH, *TINY)
    assert ended.returncode == 0, ended.stderr
