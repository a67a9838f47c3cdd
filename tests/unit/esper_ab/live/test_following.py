"""Between the end of training and the report, `status --follow` waits and other commands name the writing process."""

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from support.commands.in_process import stdout_of
from support.journals.ready_journals import planted_effect, write

from esper_ab.contracts.answer_files import PAGE, SUMMARY, VERDICT
from esper_ab.journal.load import load
from esper_ab.journal.lock import LOCK_NAME, Lock
from esper_ab.live import following
from esper_ab.live.following import is_reported
from esper_ab.report.build import build_report

FOLLOW = [("status", "-f"), ("status", "-f", "--json")]


@pytest.fixture(scope="module")
def reported(tmp_path_factory) -> Path:
    """An experiment with a report."""
    experiment_dir = write(tmp_path_factory.mktemp("reported") / "run", planted_effect())
    build_report(experiment_dir)
    return experiment_dir


@pytest.fixture
def trained(tmp_path) -> Path:
    """An experiment that this process has just finished, without a report."""
    experiment_dir = write(tmp_path / "run", planted_effect())
    with closing(Lock(experiment_dir)):
        pass
    return experiment_dir


def copy_report(reported: Path, experiment_dir: Path) -> None:
    """Write the report of the same experiment, in the order of `build_report`."""
    for name in (SUMMARY, VERDICT, PAGE):
        shutil.copyfile(reported / name, experiment_dir / name)


def find_ended_process() -> int:
    with subprocess.Popen(["true"]) as child:
        return child.pid


def test_a_report_is_complete_when_its_last_file_exists(trained, reported):
    """The verdicts are written before the page."""
    history = load(trained).history
    assert not is_reported(trained, history)
    assert is_reported(reported, history)
    copy_report(reported, trained)
    (trained / PAGE).unlink()
    assert not is_reported(trained, history)


@pytest.mark.parametrize("command", FOLLOW)
def test_following_waits_until_the_report_is_written(trained, reported, monkeypatch, command):
    monkeypatch.setattr(following.time, "sleep", lambda _: copy_report(reported, trained))
    assert "BETTER" in stdout_of(*command, trained)


@pytest.mark.parametrize("command", FOLLOW)
def test_following_does_not_wait_for_the_report_of_an_ended_process(trained, monkeypatch, command):
    monkeypatch.setattr(os, "getpid", find_ended_process)
    with closing(Lock(trained)):
        pass
    monkeypatch.setattr(following.time, "sleep", lambda _: pytest.fail("waited"))
    assert "BETTER" not in stdout_of(*command, trained)
    assert "`esper-ab report" in stdout_of("status", trained)


@pytest.mark.parametrize("command", [("status",), ("list",)])
@pytest.mark.parametrize("state_before", ["no report", "a report of fewer seeds"])
def test_following_names_the_process_that_writes_the_report(trained, reported, command, state_before):
    if state_before != "no report":
        copy_report(reported, trained)
        text = (trained / VERDICT).read_text()
        (trained / VERDICT).write_text(text.replace('"replicates": 6', '"replicates": 5'))
    output = stdout_of(*command, trained if command == ("status",) else trained.parent)
    assert f"process {os.getpid()}, which ran the experiment, writes it" in output
    assert "esper-ab report" not in output
    (trained / LOCK_NAME).unlink()
    assert "esper-ab report" in stdout_of(*command, trained if command == ("status",) else trained.parent)
