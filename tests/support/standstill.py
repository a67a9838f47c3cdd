"""A coordinator that stands still for as long as a suspended machine may, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from esper_ab.journal.events import WorkerStarted
from support import conducted
from support.patience import eventually

STANDSTILL_S = 45.0
PATIENCE_S = 240.0


def stood_still(coordinator: subprocess.Popen[bytes], run: Path) -> list[object]:
    """Stop the coordinator of `run` in the middle of it for 45 s; the events of the whole experiment.

    Its workers have to be those that it began with: nobody was lost, ended or started again.
    """
    journal = run / "events.jsonl"
    eventually(lambda: journal.exists() and b'"episode"' in journal.read_bytes(), PATIENCE_S)
    assert coordinator.poll() is None
    os.kill(coordinator.pid, signal.SIGSTOP)
    recorded = len(conducted.events_of(run))
    time.sleep(STANDSTILL_S)  # which is what is tested
    assert len(conducted.events_of(run)) == recorded
    os.kill(coordinator.pid, signal.SIGCONT)
    assert coordinator.wait(PATIENCE_S) == 0
    events = conducted.events_of(run)
    assert len(events) > recorded
    assert not conducted.incidents(events)
    assert {one.incarnation for one in conducted.of(WorkerStarted, events)} == {1}
    return events
