"""Worker processes end with their coordinator, whether it is killed or interrupted."""

import os
import signal
import subprocess
import sys

import pytest
from support.coordinators.killed_processes import alive, worker_pids, workers_when_recorded
from support.processes.children import environment
from support.processes.waiting import eventually

from esper_ab.journal.events import EpisodeRecorded, ExperimentEnded
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read

PATIENCE_S = 60.0


def start_experiment(experiment_dir, sockets):
    """Start a coordinator in its own session and return once two workers have each recorded an episode."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.coordinators.fake_experiment", experiment_dir, "30000"],
        env=environment(TMPDIR=sockets),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    workers_when_recorded(experiment_dir, process, 1)
    return process


@pytest.mark.parametrize("stopped", [False, True], ids=["at-work", "stopped"])
def test_workers_end_within_a_second_of_their_coordinator(tmp_path, sockets, stopped):
    process = start_experiment(tmp_path, sockets)
    pids = worker_pids(tmp_path)
    if stopped:  # none of their threads runs, so the kernel must end them
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    process.kill()
    process.communicate()
    eventually(lambda: not any(map(alive, pids)), 1.0)
    journal_reading = read(tmp_path / JOURNAL_NAME)
    assert sum(isinstance(event, EpisodeRecorded) for event in journal_reading) >= 2


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ([signal.SIGINT], "Ctrl-C"),
        ([signal.SIGTERM, signal.SIGTERM], "SIGTERM"),  # timeout(1) sends it to its child, then to the group
    ],
    ids=["ctrl-c", "sigterm"],
)
def test_a_signal_to_the_process_group_stops_the_run_at_a_barrier(tmp_path, sockets, numbers, name):
    process = start_experiment(tmp_path, sockets)
    for number in numbers:
        os.killpg(process.pid, number)
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert error.startswith(f"error: stopped by {name} after the current barrier")
    assert error.endswith(f"to go on: esper-ab resume {tmp_path}\n")
    *_, last_event = read(tmp_path / JOURNAL_NAME)
    assert isinstance(last_event, ExperimentEnded)
    assert last_event.status == "interrupted"
    assert not [pid for pid in worker_pids(tmp_path) if alive(pid)]
