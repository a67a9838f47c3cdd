"""Run a coordinator process and suspend it, as when its machine sleeps."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from esper_ab.journal.events import WorkerStarted
from support.coordinators import disturbed
from support.processes.children import environment
from support.processes.waiting import eventually

STANDSTILL_S = 45.0
PATIENCE_S = 240.0
COORDINATOR = """
import importlib, sys
from pathlib import Path
from esper_ab.control import experiment_run

if __name__ == "__main__":
    run, module, plan, *how = sys.argv[1:]
    module = importlib.import_module(module)
    experiment_run.run(getattr(module, plan), Path(run), module.launcher(*how), ())
"""


def coordinator(run: Path, module: str, plan: str, *arguments: str, **changes: str) -> subprocess.Popen[bytes]:
    """Start a coordinator that runs `plan` of a test module in the folder `run`.

    `arguments`: those of the module's function `launcher`. `changes`: environment variables.
    """
    run.mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, run, module, plan, *arguments], env=environment(**changes)
    )


def suspend_and_finish(coordinator: subprocess.Popen[bytes], run: Path) -> list[object]:
    """Suspend the coordinator of `run` for 45 s, let it finish, and return the events of the experiment.

    No worker may be lost, ended or restarted.
    """
    journal = run / "events.jsonl"
    eventually(lambda: journal.exists() and b'"episode"' in journal.read_bytes(), PATIENCE_S)
    assert coordinator.poll() is None
    os.kill(coordinator.pid, signal.SIGSTOP)
    event_count = len(disturbed.events_of(run))
    time.sleep(STANDSTILL_S)  # the standstill under test
    assert len(disturbed.events_of(run)) == event_count
    os.kill(coordinator.pid, signal.SIGCONT)
    assert coordinator.wait(PATIENCE_S) == 0
    events = disturbed.events_of(run)
    assert len(events) > event_count
    assert not disturbed.incidents(events)
    assert {event.incarnation for event in disturbed.events_of_kind(WorkerStarted, events)} == {1}
    return events
