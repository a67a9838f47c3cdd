"""An experiment directory that was named relative to a directory which users' code leaves."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from support import fake_plans
from support.conducted import events_of

from esper_ab.control import experiment_run
from esper_ab.execution.experiment import make_observers
from esper_ab.journal.events import ExperimentEnded
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.launchers.local import LocalLauncher

LAUNCHERS = {
    "inline": InlineLauncher("support.wandering:main_in_thread"), "local": LocalLauncher("support.wandering:main"),
}  # fmt: skip


@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
def test_workers_that_leave_the_directory_lose_nothing(tmp_path, monkeypatch, launcher):
    monkeypatch.chdir(tmp_path)
    there, plan = Path("experiments/wandering"), fake_plans.plan()
    there.mkdir(parents=True)
    with ExitStack() as stack:
        told = make_observers(stack, there, plan, None, watched=False)
        experiment_run.run(plan, there, launcher, told)
    assert Path.cwd() == tmp_path, "the process is where it was"
    ended = events_of(there)[-1]
    assert isinstance(ended, ExperimentEnded)
    assert ended.status == "finished"
    written = {path.relative_to(there).parts[0] for path in there.rglob("*") if path.is_file()}
    assert written >= {"events.jsonl", "checkpoints", "runs"}
