"""A reward function that overwrites files of the experiment: no record changes, and damage is reported by file."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab, stdout_of
from support.coordinators import disturbed
from support.processes import children
from support.rewards import meddling_reward

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import WorkerFailed
from esper_ab.journal.events import Incident
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.launchers.inline import InlineLauncher

TINY = (
    "--groups",
    "a=./mine.py:reward,b=./mine.py:reward",
    "--task",
    "synthetic",
    "--seeds",
    "2",
    "--episodes",
    "1",
    "--steps",
    "2",
    "--n-envs",
    "1",
    "--eval-episodes",
    "1",
    "--set",
    "policy.hidden=8",
    "--set",
    "ppo.epochs=1",
    "--set",
    "ppo.minibatches=1",
    "--slots",
    "early",
    "--devices",
    "cpu:0,cpu:1",
    "--launcher",
    "inline",
    "--quiet",
)
MADE = ("policies", "checkpoints", "logs", "summary.txt", "verdict.json", "report.html")


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Run an experiment whose reward changes no file; return its directory."""
    folder = tmp_path_factory.mktemp("calm")
    (folder / "mine.py").write_text(meddling_reward.REWARD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", children.environment()["PYTHONPATH"])
        stdout_of("launch", *TINY, "--name", "calm", "--output-dir", folder, folder=folder)
    return folder / "calm"


def run_with_damage(calm: Path, folder: Path, *files: str) -> Path:
    """Run the same plan again with a reward that changes these files; return its directory."""
    experiment_dir = folder / "damaged"
    shutil.copytree(calm, experiment_dir)
    for name in MADE:
        path = experiment_dir / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    first_line, *_ = (calm / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    (experiment_dir / JOURNAL_NAME).write_bytes(first_line)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(meddling_reward.KINDS_VARIABLE, meddling_reward.SEPARATOR.join(files))
        patch.setenv(meddling_reward.FOLDER_VARIABLE, str(experiment_dir))
        disturbed.resume(experiment_dir, launcher=InlineLauncher())
    return experiment_dir


def test_tidy_check_names_every_file_that_a_reward_damaged(calm, tmp_path):
    experiment_dir = run_with_damage(calm, tmp_path, *meddling_reward.FOUND_BY_CHECK)
    assert result_hash(load(experiment_dir).history) == result_hash(load(calm).history), "the damage changed no record"
    result = esper_ab("tidy", "--check", experiment_dir)
    assert result.returncode == 5
    for file in meddling_reward.FOUND_BY_CHECK:
        assert file in result.stdout + result.stderr


def test_a_changed_copy_of_the_reward_code_stops_the_experiment(calm, tmp_path):
    with pytest.raises(
        WorkerFailed, match=r"its copy in .*damaged/rewards/.* was changed .*; put it back, then resume"
    ):
        run_with_damage(calm, tmp_path, *meddling_reward.STOPS_THE_RUN)
    assert not [run for run in load(tmp_path / "damaged").history.runs.values() if run.lost]


_FIRST, *_OTHERS = meddling_reward.GIVEN_UP


@pytest.mark.parametrize("file", [_FIRST, *(pytest.param(file, marks=pytest.mark.slow) for file in _OTHERS)])
def test_the_report_of_a_lost_seed_names_the_damaged_file(file, calm, tmp_path):
    experiment_dir = tmp_path / "damaged"
    with suppress(WorkerFailed):  # when the first replicate is lost as well
        run_with_damage(calm, tmp_path, file)
    entries = [event for event in read(experiment_dir / JOURNAL_NAME) if isinstance(event, Incident)]
    lost_seed_details = [entry.detail for entry in entries if entry.category == "dropped_pair"]
    assert lost_seed_details, entries
    assert all(f"damaged/{file}" in detail for detail in lost_seed_details)
    assert "given up after failures" in stdout_of("report", experiment_dir, "-v")
