"""scripts/smoke_cuda skips exactly the tests in skipped.toml, on servers with one and with two GPUs."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
STORED = tomllib.loads((FOLDER / "skipped.toml").read_text())


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
    env |= {"PRETENDED_GPUS": str(count), "PRETENDED_SKIPS": str(result), "PYTHONPATH": str(FOLDER.parent)}
    command = [sys.executable, "-m", "pytest", FOLDER, "-m", "gpu", "-p", "gpu.pretend", "-p", "no:cacheprovider"]
    process = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert json.loads(result.read_text()) == stored


def test_no_gpu_test_calls_skip_in_its_body() -> None:
    """Such a skip could not be in the stored list."""
    files = [path for path in FOLDER.glob("test_*.py") if path != Path(__file__)]
    assert len(files) > 4
    assert [path.name for path in files if re.search(r"pytest\.(skip|importorskip)\(", path.read_text())] == []
