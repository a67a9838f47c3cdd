"""`esper-ab launch FILE`: what a shell gets from it."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.in_process import esper_ab

from esper_ab.journal.load import load

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
PYTHON = """
from esper_ab import create_experiment

experiment = (
    create_experiment("x").add_variant("a").add_variant("b", reward="mine:reward")
    .set_base_config(task="synthetic", episodes=1, steps=3, n_envs=2, devices=["cpu:0", "cpu:1"]).build()
)
"""


def test_a_file_is_run_and_every_record_can_be_told(tmp_path):
    (tmp_path / "x.toml").write_text(TOML)
    done = esper_ab("launch", "x.toml", "-v", "--output-dir", "out", "--no-parallel", "--name", "x", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ("shaped/0 started on", "wait/1 episode 0: outcome", "wait/1 evaluated: ", "experiment finished"):
        assert said in done.stderr
    experiment = load(tmp_path / "out" / "x").history.plan.experiment
    assert (experiment.name, experiment.max_parallel, experiment.placement) == ("x", 1, "sequence")


@pytest.mark.slow  # in this process: unit/esper_ab/api/test_declared.py, unit/workers/user_rewards/test_lookup.py
def test_a_reward_beside_the_file_is_found_from_anywhere_by_worker_processes_too(tmp_path):
    """The script that is installed has no working directory on its path, as `python -m` has."""
    (tmp_path / "prices.py").write_text("PRICE = 0.5\n")
    (tmp_path / "mine.py").write_text("from prices import PRICE\n\ndef reward(facts, settings):\n"
                                      "    return -PRICE * (facts.acc_delta > 0)\n")  # fmt: skip
    (tmp_path / "experiment.py").write_text(PYTHON)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    line = [Path(sys.executable).with_name("esper-ab"), "launch", "../experiment.py", "--no-retry"]
    done = subprocess.run(line, cwd=elsewhere, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    history = load(elsewhere / "experiments" / "x").history
    assert history.runs["b/0"].ref.reward_mode == f"{tmp_path / 'mine.py'}:reward"  # what resume will look for
