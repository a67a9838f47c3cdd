"""The commands that plan and repeat experiments, on the real engine with small hosts."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.children import python

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
    told = command("calibrate", "--runs", "4", "--episodes", "2", *SMALL, "--output-dir", str(folder)).stdout
    assert "Runs of one mode differ by about" in told
    return folder / "x"


@pytest.mark.slow
def test_calibrate_trains_independent_runs_on_all_lanes_and_checks_determinism(calibrated):
    found = load_calibration(calibrated)
    history = load(calibrated).history
    digests = {run.evaluation.digest for run in history.runs.values() if run.evaluation}
    assert len(digests) == found.spread.runs == 4  # no two runs share randomness
    assert {run.ref.device for run in history.runs.values()} == {"cpu:0", "cpu:1"}
    assert found.deterministic
    assert found.mode == "shaped"


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["in the runs", "between the two", "in the trial of determinism", "before the file"])
def test_a_calibration_that_was_interrupted_goes_on_when_the_command_is_given_again(calibrated, tmp_path, ended):
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
    found = load_calibration(again)
    whole = load_calibration(calibrated)
    assert (found.spread, found.deterministic) == (whole.spread, whole.deterministic)


@pytest.mark.slow
def test_a_calibration_that_is_another_or_is_finished_is_not_gone_on_with(calibrated, tmp_path):
    flags = ("--runs", "4", *SMALL, "--output-dir")
    assert "already exists" in command("calibrate", "--episodes", "2", *flags, str(calibrated.parent), status=2).stderr
    shutil.copytree(calibrated, tmp_path / "x")
    (tmp_path / "x" / FILE_NAME).unlink()
    assert "a different calibration" in command("calibrate", "--episodes", "1", *flags, str(tmp_path), status=2).stderr


@pytest.mark.slow
def test_power_reads_the_calibration_and_the_run(calibrated):
    known = json.loads(command("power", "--calibration", str(calibrated), "--json").stdout)["known"]
    assert known["sd"] == load_calibration(calibrated).spread.sd
    assert known["df"] == 3
    assert json.loads(command("power", "--experiment", str(calibrated), "--json").stdout)["known"]["df"] == 2
