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


def run_command(*args: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = python("-m", "esper_ab.commands.cli", *args)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("calibrated")
    output = run_command("calibrate", "--runs", "4", "--episodes", "2", *SMALL, "--output-dir", str(folder)).stdout
    assert "Runs of one mode differ by about" in output
    return folder / "x"


@pytest.mark.slow
def test_calibrate_trains_independent_runs_on_all_lanes(calibrated):
    calibration = load_calibration(calibrated)
    history = load(calibrated).history
    digests = {run.evaluation.digest for run in history.runs.values() if run.evaluation}
    assert len(digests) == calibration.spread.runs == 4  # no two runs share randomness
    assert {run.ref.device for run in history.runs.values()} == {"cpu:0", "cpu:1"}
    assert calibration.deterministic
    assert calibration.mode == "shaped"


@pytest.mark.slow
@pytest.mark.parametrize(
    "interrupted", ["in the runs", "between the two", "in the trial of determinism", "before the file"]
)
def test_an_interrupted_calibration_continues_when_the_command_is_repeated(calibrated, tmp_path, interrupted):
    copy = tmp_path / "x"
    shutil.copytree(calibrated, copy)
    (copy / FILE_NAME).unlink()
    if interrupted != "before the file":
        shutil.rmtree(copy / "determinism")
    if interrupted == "in the trial of determinism":
        (copy / "determinism").mkdir()
        whole = (calibrated / "determinism" / JOURNAL_NAME).read_bytes()
        (copy / "determinism" / JOURNAL_NAME).write_bytes(whole[:-9])
    if interrupted == "in the runs":
        lines = (calibrated / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
        (copy / JOURNAL_NAME).write_bytes(b"".join(lines[: len(lines) // 2]))
    run_command("calibrate", "--runs", "4", "--episodes", "2", *SMALL, "--output-dir", str(tmp_path))
    continued = load_calibration(copy)
    whole = load_calibration(calibrated)
    assert (continued.spread, continued.deterministic) == (whole.spread, whole.deterministic)


@pytest.mark.slow
def test_a_finished_or_different_calibration_is_not_continued(calibrated, tmp_path):
    flags = ("--runs", "4", *SMALL, "--output-dir")
    assert (
        "already exists" in run_command("calibrate", "--episodes", "2", *flags, str(calibrated.parent), status=2).stderr
    )
    shutil.copytree(calibrated, tmp_path / "x")
    (tmp_path / "x" / FILE_NAME).unlink()
    assert (
        "a different calibration" in run_command("calibrate", "--episodes", "1", *flags, str(tmp_path), status=2).stderr
    )


@pytest.mark.slow
def test_power_reads_a_calibration_or_an_experiment(calibrated):
    source = json.loads(run_command("power", "--calibration", str(calibrated), "--json").stdout)["known"]
    assert source["sd"] == load_calibration(calibrated).spread.sd
    assert source["df"] == 3
    assert json.loads(run_command("power", "--experiment", str(calibrated), "--json").stdout)["known"]["df"] == 2
