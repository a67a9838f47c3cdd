"""`calibrate` and `power` on the real engine with small hosts."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.processes.children import python

from esper_ab.design.calibration_file import FILE_NAME, load_calibration
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME

SMALL = ("--task", "synthetic", "--steps", "4", "--n-envs", "2", "--eval-episodes", "2", "--quiet", "--name", "x")


def command(*args: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = python("-m", "esper_ab.commands.cli", *args)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("calibrated")
    output = command("calibrate", "--runs", "4", "--episodes", "2", *SMALL, "--output-dir", str(folder)).stdout
    assert "Runs of one mode differ by about" in output
    return folder / "x"


@pytest.mark.slow
def test_calibrate_trains_independent_runs_on_all_lanes_and_tests_determinism(calibrated):
    calibration = load_calibration(calibrated)
    history = load(calibrated).history
    digests = {run.evaluation.digest for run in history.runs.values() if run.evaluation}
    assert len(digests) == calibration.spread.runs == 4  # no two runs share randomness
    assert {run.ref.device for run in history.runs.values()} == {"cpu:0", "cpu:1"}
    assert calibration.deterministic
    assert calibration.mode == "shaped"


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["in the runs", "between the two", "in the trial of determinism", "before the file"])
def test_an_interrupted_calibration_continues_when_the_command_is_repeated(calibrated, tmp_path, ended):
    again = tmp_path / "x"
    shutil.copytree(calibrated, again)
    (again / FILE_NAME).unlink()
    if ended != "before the file":
        shutil.rmtree(again / "determinism")
    if ended == "in the trial of determinism":
        (again / "determinism").mkdir()
        whole = (calibrated / "determinism" / JOURNAL_NAME).read_bytes()
        (again / "determinism" / JOURNAL_NAME).write_bytes(whole[:-9])
    if ended == "in the runs":
        lines = (calibrated / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
        (again / JOURNAL_NAME).write_bytes(b"".join(lines[: len(lines) // 2]))
    command("calibrate", "--runs", "4", "--episodes", "2", *SMALL, "--output-dir", str(tmp_path))
    continued = load_calibration(again)
    whole = load_calibration(calibrated)
    assert (continued.spread, continued.deterministic) == (whole.spread, whole.deterministic)


@pytest.mark.slow
def test_a_finished_or_different_calibration_is_not_continued(calibrated, tmp_path):
    flags = ("--runs", "4", *SMALL, "--output-dir")
    assert "already exists" in command("calibrate", "--episodes", "2", *flags, str(calibrated.parent), status=2).stderr
    shutil.copytree(calibrated, tmp_path / "x")
    (tmp_path / "x" / FILE_NAME).unlink()
    assert "a different calibration" in command("calibrate", "--episodes", "1", *flags, str(tmp_path), status=2).stderr


@pytest.mark.slow
def test_power_reads_a_calibration_and_an_experiment(calibrated):
    known = json.loads(command("power", "--calibration", str(calibrated), "--json").stdout)["known"]
    assert known["sd"] == load_calibration(calibrated).spread.sd
    assert known["df"] == 3
    assert json.loads(command("power", "--experiment", str(calibrated), "--json").stdout)["known"]["df"] == 2
