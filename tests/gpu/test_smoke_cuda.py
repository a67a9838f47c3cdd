"""scripts/smoke_cuda passes only if GPU tests ran on as many GPUs as required; its last line counts them."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from gpu.conftest import REAL
from gpu.device import build
from smoke_cuda import Gpus, Tally, last_line

SCRIPT = Path(__file__).parents[2] / "scripts" / "smoke_cuda"
CI = SCRIPT.parents[1] / ".github" / "workflows" / "ci.yml"
SMI = "#!/bin/sh\ncase $1 in -L) echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)';; *) echo 570.12;; esac\n"
NO_SMI = "#!/bin/sh\nexit 9\n"
REAL_ONLY = "memory_pressure_does_not_change_results"
no_gpu = pytest.mark.skipif(REAL or Path("/dev/nvidia0").exists(), reason="there is a GPU here")


def smoked(folder: Path, *args: str, env: dict[str, str] | None = None, smi: str = NO_SMI) -> tuple[int, str, str]:
    """Return the exit status, the last line of stdout, and stderr, where nvidia-smi is `smi`."""
    (folder / "nvidia-smi").write_text(smi)
    (folder / "nvidia-smi").chmod(0o755)
    variables = os.environ if env is None else env
    process = subprocess.run(
        [SCRIPT, *args, "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        check=False,
        env={**variables, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": sys.executable},
    )
    return process.returncode, process.stdout.splitlines()[-1] if process.stdout else "", process.stderr


@no_gpu
def test_the_smoke_test_passes_without_a_gpu_unless_a_gpu_is_required(tmp_path: Path) -> None:
    status, last_line, _ = smoked(tmp_path, "-k", REAL_ONLY)
    assert (status, last_line) == (
        0,
        "no GPU was tested; 0 of 3 GPU tests on the test device; skipped: 3 (need a real GPU)",
    )
    status, last_line, error = smoked(tmp_path, "--require-gpus", "1")
    assert (status, last_line) == (1, "")
    assert error.startswith("error: --require-gpus 1, but torch can use 0 here: torch ")
    assert error.count("\n") == 1


@pytest.mark.slow
@no_gpu
def test_the_smoke_test_names_both_versions_if_torch_cannot_use_the_gpu(tmp_path: Path) -> None:
    status, last_line, error = smoked(tmp_path, smi=SMI)
    assert (status, last_line) == (1, "")
    assert error.startswith("error: this machine has a GPU that torch cannot use: driver 570.12, torch ")
    assert torch.__version__ in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_the_smoke_test_fails_if_no_test_ran_on_a_required_gpu(test_device: Path, tmp_path: Path) -> None:
    env = build.environment(tmp_path, test_device, 1)
    status, _, error = smoked(tmp_path, "--require-gpus", "1", "-k", REAL_ONLY, env=env)
    assert (status, error) == (1, "error: no GPU test was executed; skipped: 3 (need a real GPU)\n")


def test_the_smoke_test_fails_with_fewer_gpus_than_required() -> None:
    gpus = Gpus(driver="570.12", torch="torch 2.13.0+cu130 for CUDA 13.0", usable=["A"], failing=["cuda:1: lost"])
    assert gpus.error(required=1) == ""
    assert gpus.error(required=2) == (
        "--require-gpus 2, but torch can use 1 here: driver 570.12, torch 2.13.0+cu130 for CUDA 13.0, cuda:1: lost"
    )


def test_the_last_line_of_the_smoke_test_counts_tests_and_gpus() -> None:
    tally = Tally(executed={f"test_{n}" for n in range(12)}, skipped=Counter({"needs two GPUs": 2}))
    assert last_line(["NVIDIA A100"], tally) == ("12 of 14 GPU tests on 1 x NVIDIA A100; skipped: 2 (need two GPUs)")
    tally = Tally(executed={"a", "b"}, failed={"a"}, skipped=Counter({"needs a real GPU": 1}))
    assert last_line(["A", "A", "B"], tally) == (
        "2 of 3 GPU tests on 2 x A and 1 x B, 1 failed; skipped: 1 (needs a real GPU)"
    )


def ci_jobs() -> dict[str, str]:
    return {job.partition(":")[0]: job for job in re.split(r"^  (?=\w+:)", CI.read_text(), flags=re.MULTILINE)}


def test_ci_requires_a_gpu_on_gpu_runners() -> None:
    jobs = ci_jobs()
    assert "scripts/smoke_cuda --require-gpus 1\n" in jobs["cuda"]
    assert "vars.CUDA_RUNNER == 'true'\n" in jobs["cuda"]


def test_ci_pins_torch_for_the_test_device() -> None:
    torch_first, _, later_steps = ci_jobs()["cpu"].partition("https://download.pytorch.org/whl/cpu")
    assert ".venv/bin/pip install --constraint constraints.txt torch" in torch_first
    assert "- run: .ci/run\n" in later_steps
