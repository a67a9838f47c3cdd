"""What a tracker's process leaves of a failure: a line, and nothing of what the user logs in with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.journals import planted_effect, write

from esper_ab.trackers.process import _Work
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.state import FOLDER, read_progress, save_settings


def written(experiment_dir):
    """All that is in files of the directory."""
    return b"".join(path.read_bytes() for path in experiment_dir.rglob("*") if path.is_file())


@pytest.mark.parametrize("long", [0, 480, 600])
def test_a_library_that_says_the_address_says_no_password(tmp_path, capfd, long):
    (tmp_path / FOLDER).mkdir()
    why = f"MlflowException: {'x' * long} API request to http://me:s3cret@127.0.0.1:9/api failed"
    assert _Work(tmp_path, "mlflow", "now").fail(why) == 1
    said = capfd.readouterr().err
    assert said.startswith("error: mlflow: MlflowException: ")
    assert read_progress(tmp_path, "mlflow").detail == said.removeprefix("error: mlflow: ").rstrip("\n")
    assert b"s3cret" not in written(tmp_path) + said.encode()
    assert b"me:" not in written(tmp_path)


def test_an_experiment_that_is_resumed_with_a_password_in_the_environment_keeps_nothing_of_it(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect())
    save_settings(experiment_dir, Tracking(mlflow=True))
    done = subprocess.run(
        [sys.executable, "-m", "esper_ab.trackers.process", experiment_dir, "mlflow", "now"],
        env=os.environ | {"MLFLOW_TRACKING_URI": "http://me:s3cret@127.0.0.1:9"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "MLFLOW_TRACKING_PASSWORD" in read_progress(experiment_dir, "mlflow").detail
    assert b"s3cret" not in written(experiment_dir) + done.stdout + done.stderr
