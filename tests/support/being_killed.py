"""A coordinator in a process of its own, killed when its journal has grown to a size; workers to be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress

from esper_ab.contracts.errors import UsageError
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.load import load
from support.children import environment

PATIENCE_S = 90.0


def killed_at(run_dir, sockets, size, *arguments):
    """Start fake_experiment with `arguments` and kill it when its journal has that many bytes.

    Returns the events that it left, or all of them when it came to its end before.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "support.fake_experiment", run_dir, *map(str, arguments)],
        env=environment(TMPDIR=sockets), stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    journal, deadline = run_dir / JOURNAL_NAME, time.monotonic() + PATIENCE_S
    while process.poll() is None:
        assert time.monotonic() < deadline
        if journal.exists() and journal.stat().st_size >= size:
            process.kill()
        time.sleep(0.002)
    _, error = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), error
    return list(read(journal))


def workers_when_recorded(run_dir, process, episodes):
    """Started workers (events), once every run of `process` has that many episodes on record."""
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(UsageError):  # no journal yet, or one without a line
            history = load(run_dir).history
            if all(len(one.episodes) >= episodes for one in history.runs.values()):
                return history.workers
        time.sleep(0.02)
    process.kill()
    raise AssertionError(process.communicate()[1])
