"""Real GPUs, the real launcher: which devices did the work, read from the journal. Skips, and says so, without CUDA."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from support.journals import records_of

from esper_ab.journal.fold import History
from esper_ab.journal.load import load

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
SMALL = ("--episodes", "2", "--steps", "8", "--n-envs", "4", "--seeds", "2", "--eval-episodes", "4")
SHARED = ("--groups", "shaped,simplified", "--devices", "cuda:0", "--placement", "share")
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two CUDA devices")


def said(module: str, *args: str) -> str:
    """What a command printed."""
    done = subprocess.run(
        [sys.executable, "-m", module, *args], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def train(folder: Path, *args: str, task: str = "synthetic") -> History:
    said("esper_ab.launch", "--task", task, *SMALL, "--output-dir", str(folder), "--name", "run", "--quiet", *args)
    return load(folder / "run").history


def devices_of_environments(history: History) -> dict[str, Counter[str]]:
    """For every run, on which devices its environments trained in the last episode."""
    return {name: Counter(env.device for env in records_of(run)[-1].envs) for name, run in history.runs.items()}


@pytest.mark.parametrize("task", ["synthetic", "digits"])
@pytest.mark.parametrize("how", [(), ("--no-deterministic",), ("--amp", "bf16")], ids=["default", "free", "bf16"])
def test_two_groups_share_one_gpu(tmp_path: Path, task: str, how: tuple[str, ...]) -> None:
    history = train(tmp_path, *SHARED, *how, task=task)
    assert {run.ref.device for run in history.runs.values()} == {"cuda:0/0", "cuda:0/1"}
    assert all(counts == {"cuda:0": 4} for counts in devices_of_environments(history).values())
    assert all(run.evaluation is not None for run in history.runs.values())


def test_equal_groups_have_equal_records_on_a_gpu(tmp_path: Path) -> None:
    """In processes of their own, on the same GPU: what --deterministic, the default, promises."""
    history = train(
        tmp_path, "--groups", "a=shaped,b=shaped", "--devices", "cuda:0", "--placement", "share", task="digits"
    )
    for replicate in range(2):
        a, b = (history.runs[f"{group}/{replicate}"] for group in "ab")
        assert [record.digest for record in records_of(a)] == [record.digest for record in records_of(b)]
        assert a.evaluation is not None
        assert b.evaluation is not None
        assert a.evaluation.digest == b.evaluation.digest


def test_evaluate_repeats_the_evaluation_of_a_run(tmp_path: Path) -> None:
    history = train(tmp_path, *SHARED, task="digits")
    policy = str(tmp_path / "run" / "policies" / "shaped" / "0.pt")
    rows = json.loads(said("esper_ab.commands.cli", "evaluate", policy, "--device", "cuda:0", "--json"))
    evaluation = history.runs["shaped/0"].evaluation
    assert evaluation is not None
    for row in rows:
        hosts = [played.outcome.outcome for played in evaluation.episodes if played.actions == row["actions"]]
        assert row["held_out_accuracy"] == float(np.mean(hosts))


def test_one_run_uses_a_gpu_and_a_cpu(tmp_path: Path) -> None:
    history = train(
        tmp_path, "--groups", "shaped,simplified", "--devices", "cuda:0", "cpu:0", "--devices-per-run", "2",
        "--placement", "share",
    )
    assert all(counts == {"cuda:0": 2, "cpu:0": 2} for counts in devices_of_environments(history).values())


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
