"""Kill a coordinator process when its journal reaches a size, and find workers to kill."""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.journal.events import WorkerStarted
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from support.processes.children import environment

PATIENCE_S = 90.0


def killed_at(experiment_dir, sockets, size, argument):
    """Start fake_experiment with `argument` and kill it when its journal has `size` bytes.

    Return the events in the journal: all of them if the experiment finished first.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "support.coordinators.fake_experiment", experiment_dir, str(argument)],
        env=environment(TMPDIR=sockets),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    journal = experiment_dir / JOURNAL_NAME
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None:
        assert time.monotonic() < deadline
        if journal.exists() and journal.stat().st_size >= size:
            process.kill()
        time.sleep(0.002)
    _, error = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), error
    return list(read(journal))


def workers_when_recorded(experiment_dir, process, episodes):
    """Wait until every run of `process` has `episodes` recorded episodes; return the start events of its workers."""
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(UsageError):  # no journal yet, or one without a line
            history = load(experiment_dir).history
            if all(len(run.episodes) >= episodes for run in history.runs.values()):
                return history.workers
        time.sleep(0.02)
    process.kill()
    raise AssertionError(process.communicate()[1])


def alive(pid):
    """True if the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def worker_pids(experiment_dir):
    return [event.pid for event in read(experiment_dir / JOURNAL_NAME) if isinstance(event, WorkerStarted)]
