"""Foreign code, such as a reward function, changes the journal or directory of a running experiment."""

import os
import shutil
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab
from support.plans import fake_plans
from support.processes.waiting import eventually
from support.worlds.fault_world import check

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import JournalError
from esper_ab.control import experiment_run
from esper_ab.journal.events import Incident
from esper_ab.journal.file import Journal, Moved
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.launchers.inline import InlineLauncher

LAUNCHER = InlineLauncher("support.workers.fake_worker:main_in_thread")
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
def test_a_coordinator_does_not_write_to_a_journal_that_other_code_changed(tmp_path, change):
    journal = Journal(tmp_path)
    path = tmp_path / JOURNAL_NAME
    journal.append(entry(0))
    journal.commit()
    CHANGES[change](path)
    bytes_before = path.read_bytes() if path.exists() else None
    journal.append(entry(1))
    for write in (journal.write, journal.commit, journal.close):
        message = rf"{JOURNAL_NAME} was changed by other code.*esper-ab tidy .* --check"
        if change == "removed":
            message = rf"{JOURNAL_NAME} was removed while the experiment was running.*launch the experiment again"
        with pytest.raises(JournalError, match=message):
            write()
    assert (path.read_bytes() if path.exists() else None) == bytes_before


def test_an_experiment_can_be_repaired_after_a_worker_wrote_to_its_journal(tmp_path, monkeypatch):
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


def test_an_experiment_can_resume_from_its_moved_directory(tmp_path, monkeypatch):
    """Nothing is written to a new folder at the old path."""
    plan = fake_plans.plan(episodes=3)
    calm = tmp_path / "calm"
    experiment_dir = tmp_path / "run"
    moved_folder = tmp_path / "moved"
    for folder in (calm, experiment_dir):
        folder.mkdir()
    experiment_run.run(plan, calm, LAUNCHER, ())
    with monkeypatch.context() as patch:
        patch.setenv("SCRIBBLE_IN", str(experiment_dir / JOURNAL_NAME))
        patch.setenv("FAKE_FAULT", "move:a/0:1")
        with pytest.raises(Moved, match=rf"^{experiment_dir} was moved .*: esper-ab resume {moved_folder}$") as error:
            experiment_run.run(plan, experiment_dir, LAUNCHER, ())
    assert error.value.exit_code == 2
    assert [(path.name, path.read_text()) for path in experiment_dir.iterdir()] == [(JOURNAL_NAME, "foreign\n")]
    experiment_run.resume(moved_folder, LAUNCHER, ())
    check(moved_folder, result_hash(load(calm).history))


def test_the_error_about_a_removed_directory_advises_only_a_new_launch(tmp_path, monkeypatch):
    """A worker removes the journal first, and may still be removing the rest when the experiment has ended."""
    experiment_dir = tmp_path / "run"
    monkeypatch.setenv("SCRIBBLE_IN", str(experiment_dir / JOURNAL_NAME))
    monkeypatch.setenv("FAKE_FAULT", "remove:a/0:1")
    experiment_dir.mkdir()
    with pytest.raises(JournalError, match=r"was removed while .*: launch the experiment again$") as error:
        experiment_run.run(fake_plans.plan(episodes=3), experiment_dir, LAUNCHER, ())
    assert not any(word in str(error.value) for word in ("resume", "tidy", "\n"))
    eventually(lambda: not experiment_dir.exists())
