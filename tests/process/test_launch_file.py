"""`esper-ab launch FILE`: what a shell gets from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.in_process import esper_ab

from esper_ab.journal.load import load

FILE = '''
from esper_ab import create_experiment

experiment = (
    create_experiment("x", description="Which one?")
    .add_variant("a", "the usual")
    .add_variant("b", reward={reward!r})
    .set_runs_per_variant(2)
    .set_base_config(task="synthetic", episodes=1, steps=3, n_envs=2, devices=["cpu:0", "cpu:1"])
    .build()
)
print("not the command's output")
'''
TOML = """
groups = ["shaped", "wait"]
task = "synthetic"
seeds = 2
episodes = 1
steps = 3
n_envs = 2
devices = ["cpu:0", "cpu:1"]

[launcher]
name = "inline"
"""


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return esper_ab("launch", *args, folder=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.py").write_text(FILE.format(reward="sparse"))
    (tmp_path / "x.toml").write_text(TOML)
    return tmp_path


def test_a_file_is_run_and_every_record_can_be_told(folder: Path) -> None:
    done = run(folder, "x.toml", "-v", "--output-dir", "out", "--no-parallel", "--name", "x")
    assert done.returncode == 0, done.stderr
    for said in ("shaped/0 started on", "wait/1 episode 0: outcome", "wait/1 evaluated: ", "experiment finished"):
        assert said in done.stderr
    experiment = load(folder / "out" / "x").history.plan.experiment
    assert (experiment.name, experiment.max_parallel, experiment.placement) == ("x", 1, "sequence")


def test_a_reward_beside_the_file_is_found_from_anywhere_by_worker_processes_too(folder: Path) -> None:
    """The script that is installed has no working directory on its path, as `python -m` has."""
    (folder / "prices.py").write_text("PRICE = 0.5\n")
    (folder / "mine.py").write_text("from prices import PRICE\n\ndef reward(facts, settings):\n"
                                    "    return -PRICE * (facts.acc_delta > 0)\n")  # fmt: skip
    text = FILE.format(reward="mine:reward").replace("set_runs_per_variant(2)", "set_runs_per_variant(1)")
    (folder / "mine_experiment.py").write_text(text)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    line = [Path(sys.executable).with_name("esper-ab"), "launch", "../mine_experiment.py", "--no-retry"]
    done = subprocess.run(line, cwd=elsewhere, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    history = load(elsewhere / "experiments" / "x").history
    assert history.runs["b/0"].ref.reward_mode == f"{folder / 'mine.py'}:reward"  # what resume will look for


@pytest.mark.parametrize("file", ["x.toml", "x.py"])
def test_a_dry_run_makes_nothing_and_what_a_file_prints_is_not_the_plan(folder: Path, file: str) -> None:
    done = run(folder, file, "--dry-run", "--max-parallel", "2")
    assert done.returncode == 0, done.stderr
    assert "4 runs (2 groups x 2 seeds), 2 at a time, " in done.stdout
    assert ("not the command's output" in done.stderr) == (file == "x.py")
    assert "not the command's output" not in done.stdout
    assert not (folder / "experiments").exists()
