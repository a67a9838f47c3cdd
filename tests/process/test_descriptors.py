"""Limits on file descriptors: plans that need too many are refused, and foreign connections do no harm.

libzmq aborts the process when it has no descriptor for a connection, so each experiment has its own process.
"""

import os
import re
import subprocess
import sys

import pytest
from support.commands.progress_lines import without_progress
from support.coordinators.disturbed import events_of, incidents, records
from support.processes.children import python


def run_with_limits(experiment_dir, soft_limit, hard_limit, lanes, launcher, transport="ipc", fault=""):
    experiment_dir.mkdir()
    return python(
        "-m",
        "support.coordinators.limited_experiment",
        experiment_dir,
        soft_limit,
        hard_limit,
        lanes,
        launcher,
        transport,
        FAKE_FAULT=fault,
        TEST_PID=str(os.getpid()),
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    experiment_dir = tmp_path_factory.mktemp("undisturbed") / "run"
    result = run_with_limits(experiment_dir, 1024, 4096, 2, "inline")
    assert result.returncode == 0, result.stderr
    return records(events_of(experiment_dir))


@pytest.mark.parametrize(("launcher", "descriptors_per_worker"), [("local", 4), ("inline", 11)])
def test_a_plan_that_needs_too_many_descriptors_is_refused_before_it_starts(tmp_path, launcher, descriptors_per_worker):
    result = run_with_limits(tmp_path / "run", 64, 90, 10, launcher)
    assert result.returncode == 2, result.stderr
    (line,) = without_progress(result.stderr)
    needed_descriptors = int(line.split(" file descriptors")[0].rpartition(" ")[2])
    assert line == (
        f"error: 10 workers need {needed_descriptors} file descriptors, but this process may open 90: "
        f"raise the hard limit (ulimit -Hn {needed_descriptors}; for a service LimitNOFILE={needed_descriptors}), "
        "or use fewer devices"
    )
    assert 10 * descriptors_per_worker + 64 < needed_descriptors < 10 * descriptors_per_worker + 90
    assert list((tmp_path / "run").iterdir()) == []


def test_foreign_connections_that_exhaust_descriptors_change_no_record(tmp_path, undisturbed):
    """Open as many silent tcp connections as there are descriptors, then kill a worker."""
    result = run_with_limits(tmp_path / "run", 128, 128, 2, "local", "tcp", fault="crowd:b/0:1:1,die:a/0:2:1")
    assert (result.returncode, result.stdout, without_progress(result.stderr)) == (0, "exhausted\n", [])
    events = events_of(tmp_path / "run")
    assert records(events) == undisturbed
    assert {entry.category for entry in incidents(events)} - {"start_delayed"} == {"worker_death", "restart"}


def test_launch_refuses_a_plan_above_the_descriptor_limit(tmp_path):
    result = subprocess.run(
        [
            "sh",
            "-c",
            "ulimit -n 64 && exec $0 -m esper_ab.launch $*",
            sys.executable,
            "--groups",
            "wait,random",
            "--task",
            "synthetic",
            "--devices",
            "cpu:0",
            "cpu:1",
            "--yes",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = without_progress(result.stderr)
    assert re.fullmatch(r"error: 2 workers need \d+ file descriptors, but this process may open 64: .*", line)
    assert list(tmp_path.iterdir()) == []
