"""An experiment directory that was named relative to a directory which users' code leaves, as Hydra does."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from support import fake_plans, fake_worker
from support.conducted import THREADS, run

from esper_ab.execution.experiment import make_observers


def test_workers_that_leave_the_directory_lose_nothing(tmp_path, monkeypatch):
    hello = fake_worker.hello
    monkeypatch.setattr(fake_worker, "hello", lambda order: os.chdir(tempfile.gettempdir()) or hello(order))
    monkeypatch.chdir(tmp_path)
    there, plan = Path("wandering"), fake_plans.plan()
    there.mkdir()
    with ExitStack() as stack:
        events = run(there, plan, *make_observers(stack, there, plan, None, watched=False), launcher=THREADS)
    assert Path.cwd() == tmp_path, "the process is where it was"
    assert events[-1].status == "finished"
    written = {path.relative_to(there).parts[0] for path in there.rglob("*") if path.is_file()}
    assert written >= {"events.jsonl", "checkpoints", "runs"}
