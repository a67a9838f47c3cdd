"""The sign-off on a GPU: it must not pass where there is one that torch cannot use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "smoke_cuda"
SMI = "#!/bin/sh\ncase $1 in -L) echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)';; *) echo 570.12;; esac\n"


def sign_off(tmp_path: Path, *, smi: str, python: str) -> subprocess.CompletedProcess[str]:
    for name, text in (("nvidia-smi", smi), ("python", python)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    around = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": str(tmp_path / "python")}
    return subprocess.run([SCRIPT], env=around, capture_output=True, text=True, check=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch can use a GPU here")
def test_a_gpu_that_torch_cannot_use_is_a_failure_with_both_versions(tmp_path):
    done = sign_off(tmp_path, smi=SMI, python=f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert done.returncode == 1
    assert "570.12" in done.stderr
    assert torch.__version__ in done.stderr


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is a GPU here")
def test_without_a_gpu_the_tests_are_left_to_skip(tmp_path):
    done = sign_off(tmp_path, smi="#!/bin/sh\nexit 9\n", python='#!/bin/sh\necho "$@"\n')
    assert (done.returncode, done.stdout.strip()) == (0, "-m pytest tests/gpu -m gpu -rs")
