"""A coordinator in a process of its own, which may stand still for as long as a suspended machine, and go on."""

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


def coordinator(run: Path, module: str, plan: str, *how: str, **changes: str) -> subprocess.Popen[bytes]:
    """Run a test module's plan in `run` with its `launcher(*how)`; `changes` go into the environment."""
    run.mkdir()
    return subprocess.Popen([sys.executable, "-c", COORDINATOR, run, module, plan, *how], env=environment(**changes))


def suspend_and_finish(coordinator: subprocess.Popen[bytes], run: Path) -> list[object]:
    """Stop the coordinator of `run` in the middle of it for 45 s; the events of the whole experiment.

    Its workers have to be those that it began with: nobody was lost, ended or started again.
    """
    journal = run / "events.jsonl"
    eventually(lambda: journal.exists() and b'"episode"' in journal.read_bytes(), PATIENCE_S)
    assert coordinator.poll() is None
    os.kill(coordinator.pid, signal.SIGSTOP)
    recorded = len(disturbed.events_of(run))
    time.sleep(STANDSTILL_S)  # which is what is tested
    assert len(disturbed.events_of(run)) == recorded
    os.kill(coordinator.pid, signal.SIGCONT)
    assert coordinator.wait(PATIENCE_S) == 0
    events = disturbed.events_of(run)
    assert len(events) > recorded
    assert not disturbed.incidents(events)
    assert {one.incarnation for one in disturbed.events_of_kind(WorkerStarted, events)} == {1}
    return events
