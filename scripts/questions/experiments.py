"""The experiments behind the open questions; budgets and rng seeds were fixed before the first run of record."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from experiment_dirs import finished

from esper_ab.journal.fold import History
from esper_ab.journal.load import load

ROOT = Path(__file__).resolve().parents[2]
GROUPS = ("shaped", "simplified")
_COMMON = (
    "--groups", ",".join(GROUPS), "--task", "digits", "--devices", "cpu:0,cpu:1", "--no-early-stop", "--steps", "25",
    "--eval-episodes", "4",
)  # fmt: skip
# Question 2 and 3: the same replicates with separate and with shared normalisers.
TRAINING = (*_COMMON, "--seeds", "8", "--episodes", "10", "--n-envs", "4", "--rng-seed", "2000")
ARMS = {"separate": (), "shared": ("--share-observation-norm",)}
# Question 1: the same replicates with and without the barrier, one after the other in turn.
TIMING = (*_COMMON, "--seeds", "2", "--episodes", "8", "--n-envs", "4", "--rng-seed", "2100")
MODES = ("lockstep", "independent")
REPEATS = 3


def run(folder: Path, name: str, arguments: tuple[str, ...]) -> Path:
    """The directory of a finished run, from `folder` if it is there; one that was cut short is done over."""
    experiment_dir = folder / name
    if not finished(experiment_dir):
        shutil.rmtree(experiment_dir, ignore_errors=True)
        print(f"{name} …", flush=True)
        command = [sys.executable, "-m", "esper_ab.launch", *arguments, "--quiet", "--json"]
        subprocess.run(
            [*command, "--name", name, "--output-dir", str(folder)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    return experiment_dir


def history_of(experiment_dir: Path) -> History:
    """Of a finished run."""
    return load(experiment_dir).history
