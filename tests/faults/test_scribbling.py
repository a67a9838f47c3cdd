"""Somebody who is no coordinator changes the files of an experiment while it goes on: a reward function, by mistake."""

import os
import shutil
from pathlib import Path

import pytest
from support import fake_plans
from support.fault_world import check
from support.in_process import esper_ab

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import JournalError
from esper_ab.control import experiment_run
from esper_ab.journal.events import Incident
from esper_ab.journal.file import Journal, Moved
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
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
    journal = Journal(tmp_path)
    path = tmp_path / JOURNAL_NAME
    journal.append(entry(0))
    journal.commit()
    CHANGES[change](path)
    changed = path.read_bytes() if path.exists() else None
    journal.append(entry(1))
    for write in (journal.write, journal.commit, journal.close):
        told = rf"{JOURNAL_NAME} was changed by other code.*esper-ab tidy .* --check"
        if change == "removed":
            told = rf"{JOURNAL_NAME} was removed while the experiment was running.*launch the experiment again"
        with pytest.raises(JournalError, match=told):
            write()
    assert (path.read_bytes() if path.exists() else None) == changed


def test_an_experiment_whose_journal_a_worker_writes_to_ends_at_once_and_can_be_gone_on_with(tmp_path, monkeypatch):
    plan = fake_plans.plan(episodes=3)
    calm = tmp_path / "calm"
    experiment_dir = tmp_path / "run"
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


def test_an_experiment_whose_directory_is_moved_stops_and_is_gone_on_with_at_its_new_place(tmp_path, monkeypatch):
    """Nothing is written to the folder that takes its place."""
    plan = fake_plans.plan(episodes=3)
    calm = tmp_path / "calm"
    experiment_dir = tmp_path / "run"
    moved = tmp_path / "moved"
    for folder in (calm, experiment_dir):
        folder.mkdir()
    experiment_run.run(plan, calm, LAUNCHER, ())
    with monkeypatch.context() as patch:
        patch.setenv("SCRIBBLE_IN", str(experiment_dir / JOURNAL_NAME))
        patch.setenv("FAKE_FAULT", "move:a/0:1")
        with pytest.raises(Moved, match=rf"^{experiment_dir} was moved .*: esper-ab resume {moved}$") as told:
            experiment_run.run(plan, experiment_dir, LAUNCHER, ())
    assert told.value.exit_code == 2
    assert [(path.name, path.read_text()) for path in experiment_dir.iterdir()] == [(JOURNAL_NAME, "foreign\n")]
    experiment_run.resume(moved, LAUNCHER, ())
    check(moved, result_hash(load(calm).history))


def test_nothing_is_advised_that_cannot_help_once_an_experiments_directory_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIBBLE_IN", str(tmp_path / "run" / JOURNAL_NAME))
    monkeypatch.setenv("FAKE_FAULT", "remove:a/0:1")
    (tmp_path / "run").mkdir()
    with pytest.raises(JournalError, match=r"was removed while .*: launch the experiment again$") as told:
        experiment_run.run(fake_plans.plan(episodes=3), tmp_path / "run", LAUNCHER, ())
    assert not any(word in str(told.value) for word in ("resume", "tidy", "\n"))
    assert not (tmp_path / "run").exists()
