"""Somebody who is no coordinator changes the files of an experiment while it goes on: a reward function, by mistake."""

import os
import shutil
from pathlib import Path

import pytest
from support import fake_plans
from support.fault_world import check
from support.in_process import esper_ab

from esper_ab.analysis.trained_by import result_hash
from esper_ab.contracts.errors import JournalError
from esper_ab.control import experiment_run
from esper_ab.journal.events import Incident
from esper_ab.journal.file import JOURNAL_NAME, Journal, read
from esper_ab.journal.load import load
from esper_ab.launchers.inline import InlineLauncher

LAUNCHER = InlineLauncher("support.fake_worker:main_in_thread")
CHANGES = {
    "appended": lambda path: path.write_bytes(path.read_bytes() + b"my own line\n"),
    "appended without an end": lambda path: path.write_bytes(path.read_bytes() + b"my own"),
    "shortened": lambda path: os.truncate(path, path.stat().st_size - 1),
    "emptied": lambda path: path.write_bytes(b""),
    "removed": lambda path: path.unlink(),
    "replaced": lambda path: Path(shutil.copy(path, f"{path}.new")).replace(path),
}


def entry(number):
    return Incident(category="disk_full", run_name="", episode=number, detail="")


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_written_to_a_journal_that_somebody_else_has_changed(tmp_path, change):
    journal, path = Journal(tmp_path), tmp_path / JOURNAL_NAME
    journal.append(entry(0))
    journal.commit()
    CHANGES[change](path)
    changed = path.read_bytes() if path.exists() else None
    journal.append(entry(1))
    for write in (journal.write, journal.commit, journal.close):
        told = rf"{JOURNAL_NAME} was changed by other code.*esper-ab tidy .* --check"
        with pytest.raises(JournalError, match=told):
            write()
    assert (path.read_bytes() if path.exists() else None) == changed


def test_an_experiment_whose_journal_a_worker_writes_to_ends_at_once_and_can_be_gone_on_with(tmp_path, monkeypatch):
    plan, calm, experiment_dir = fake_plans.plan(episodes=3), tmp_path / "calm", tmp_path / "run"
    for folder in (calm, experiment_dir):
        folder.mkdir()
    experiment_run.run(plan, calm, LAUNCHER, ())
    with monkeypatch.context() as patch:
        patch.setenv("SCRIBBLE_IN", str(experiment_dir / JOURNAL_NAME))
        patch.setenv("FAKE_FAULT", "scribble:a/0:2")
        with pytest.raises(JournalError, match="was changed by other code, perhaps a reward function"):
            experiment_run.run(plan, experiment_dir, LAUNCHER, ())
    assert esper_ab("report", experiment_dir).returncode == 5
    assert esper_ab("tidy", experiment_dir, "--repair").returncode == 0
    assert '"reward": 1.0' not in (experiment_dir / JOURNAL_NAME).read_text()
    assert len(list(read(experiment_dir / JOURNAL_NAME))) > 1
    experiment_run.resume(experiment_dir, LAUNCHER, ())
    check(experiment_dir, result_hash(load(calm).history))
