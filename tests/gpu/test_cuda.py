"""Real GPUs, the real launcher: which devices did the work, read from the journal. Skips, and says so, without CUDA."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from esper_ab.journal.fold import History
from esper_ab.journal.load import load

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SMALL = ("--task", "synthetic", "--episodes", "2", "--steps", "4", "--n-envs", "4", "--replicates", "2",
         "--eval-episodes", "1")
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two CUDA devices")


def train(folder: Path, *args: str) -> History:
    done = subprocess.run(
        [sys.executable, "-m", "esper_ab.launch", *SMALL, "--out", str(folder), "--name", "run", "--quiet", *args],
        capture_output=True, text=True, timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return load(folder / "run").history


def devices_of_environments(history: History) -> dict[str, Counter[str]]:
    """For every run, on which devices its environments trained in the last episode."""
    return {name: Counter(env.device for env in run.curve()[-1].envs) for name, run in history.runs.items()}


def test_two_groups_share_one_gpu(tmp_path: Path) -> None:
    history = train(tmp_path, "--groups", "shaped,simplified", "--devices", "cuda:0", "--placement", "share")
    assert {run.ref.device for run in history.runs.values()} == {"cuda:0/0", "cuda:0/1"}
    assert all(counts == {"cuda:0": 4} for counts in devices_of_environments(history).values())
    assert all(run.evaluation is not None for run in history.runs.values())


@two_gpus
def test_two_groups_use_two_gpus(tmp_path: Path) -> None:
    history = train(tmp_path, "--groups", "shaped,simplified", "--devices", "cuda:0", "cuda:1")
    for replicate in range(2):
        used = {history.runs[f"{group}/{replicate}"].ref.device for group in ("shaped", "simplified")}
        assert used == {"cuda:0", "cuda:1"}
    assert {device for counts in devices_of_environments(history).values() for device in counts} == {"cuda:0", "cuda:1"}


@two_gpus
def test_one_run_uses_two_gpus(tmp_path: Path) -> None:
    history = train(
        tmp_path, "--groups", "shaped,simplified", "--devices", "cuda:0", "cuda:1", "--devices-per-run", "2",
        "--placement", "share",
    )
    assert all(counts == {"cuda:0": 2, "cuda:1": 2} for counts in devices_of_environments(history).values())
