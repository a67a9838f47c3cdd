"""scripts/smoke_cuda skips exactly the tests in skipped.toml, on servers with one and with two GPUs."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STORED = tomllib.loads((HERE / "skipped.toml").read_text())


@pytest.mark.parametrize(
    ("count", "stored"),
    [
        pytest.param(1, STORED["one_gpu"] | STORED["every_server"], id="one GPU", marks=pytest.mark.slow),
        pytest.param(2, STORED["every_server"], id="two GPUs"),
    ],
)
def test_a_server_with_gpus_skips_exactly_the_stored_tests(
    tmp_path: Path, count: int, stored: dict[str, list[str]]
) -> None:
    result = tmp_path / "skipped.json"
    env = {name: value for name, value in os.environ.items() if name not in ("CUDA_VISIBLE_DEVICES", "TEST_GPUS")}
    env |= {"PRETENDED_GPUS": str(count), "PRETENDED_SKIPS": str(result), "PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, "-m", "pytest", HERE, "-m", "gpu", "-p", "gpu.pretend", "-p", "no:cacheprovider"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(result.read_text()) == stored


def test_no_gpu_test_skips_itself_in_its_body() -> None:
    """Such a skip could not be in the stored list."""
    files = [path for path in HERE.glob("test_*.py") if path != Path(__file__)]
    assert len(files) > 4
    assert [path.name for path in files if re.search(r"pytest\.(skip|importorskip)\(", path.read_text())] == []
