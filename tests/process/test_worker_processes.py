"""Workers as real processes: killed, hung, orphaned, interrupted. None is ever left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from support import fake_plans
from support.being_killed import alive, worker_pids
from support.children import environment
from support.fake_worker import FAULT_VARIABLE

from esper_ab.contracts.errors import WorkerFailed, WorkerHung
from esper_ab.control.experiment_run import run
from esper_ab.control.rules.workers import Limits
from esper_ab.journal.events import EpisodeRecorded, ExperimentEnded, MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.launchers.local import LocalLauncher

PATIENCE_S = 60.0


def conduct(experiment_dir, plan, limits=None):
    run(plan, experiment_dir, LocalLauncher("support.fake_worker:main"), (), limits)
    return list(read(experiment_dir / JOURNAL_NAME))


def assert_nobody_left(experiment_dir, workers=2):
    pids = worker_pids(experiment_dir)
    assert len(pids) == workers
    assert not [pid for pid in pids if alive(pid)]
    assert multiprocessing.active_children() == []


def test_a_run_whose_worker_is_always_killed_is_named_and_the_others_are_ended(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "die:b/0:2")
    with pytest.raises(WorkerFailed, match=r"worker w01/3 on cpu:1 was killed by SIGKILL .* in episode 1 of run b/0"):
        conduct(tmp_path, fake_plans.plan())
    assert_nobody_left(tmp_path, workers=4)


def test_a_hung_worker_shows_where_it_is_stuck_and_is_ended(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "hang:a/0:2")
    with pytest.raises(WorkerHung, match=r"in episode 1 of run a/0") as caught:
        conduct(tmp_path, fake_plans.plan(), Limits(floor_s=1.0, start_up_s=PATIENCE_S))
    assert "fake_worker.py" in str(caught.value)
    assert "in _hang" in str(caught.value)
    assert "w01/" not in str(caught.value).splitlines()[0]
    assert_nobody_left(tmp_path, workers=4)


def start_experiment(experiment_dir, sockets, episodes=30_000):
    """A coordinator in its own session; returns once two workers have recorded an episode each."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.fake_experiment", experiment_dir, str(episodes)],
        env=environment(TMPDIR=sockets), stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    journal, deadline = experiment_dir / JOURNAL_NAME, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        if journal.exists() and any(
            isinstance(event, MilestoneReleased) and event.milestone for event in read(journal)
        ):
            return process
        time.sleep(0.01)
    raise AssertionError(f"no episode was recorded: {process.communicate()[1]}")


@pytest.mark.parametrize("stopped", [False, True], ids=["at-work", "stopped"])
def test_no_worker_outlives_its_coordinator_by_more_than_a_second(tmp_path, sockets, stopped):
    process = start_experiment(tmp_path, sockets)
    pids = worker_pids(tmp_path)
    if stopped:  # no thread of theirs runs: the kernel has to end them
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 1.0
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in pids if alive(pid)]
    reading = read(tmp_path / JOURNAL_NAME)
    assert sum(isinstance(event, EpisodeRecorded) for event in reading) >= 2


@pytest.mark.parametrize(("numbers", "name"), [
    ([signal.SIGINT], "Ctrl-C"),
    ([signal.SIGTERM, signal.SIGTERM], "SIGTERM"),  # timeout(1) sends it to its child, then to everybody
], ids=["ctrl-c", "sigterm"])  # fmt: skip
def test_a_signal_to_the_whole_group_stops_in_order(tmp_path, sockets, numbers, name):
    process = start_experiment(tmp_path, sockets)
    for number in numbers:
        os.killpg(process.pid, number)
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert error.startswith(f"stopped by {name} after the current barrier")
    assert error.endswith(f"to go on: esper-ab resume {tmp_path}\n")
    *_, last = read(tmp_path / JOURNAL_NAME)
    assert isinstance(last, ExperimentEnded)
    assert last.status == "interrupted"
    assert not [pid for pid in worker_pids(tmp_path) if alive(pid)]
