"""Run the GPU tests that compute in their own process in a child process with the test device."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
IN_PROCESS = ["test_bank_on_gpu.py", "test_decisions.py"]


@pytest.mark.gpus(2)
def test_in_process_gpu_tests_pass_on_the_test_device(
    made_gpus: Callable[..., dict[str, str]], record_property: Callable[[str, object], None]
) -> None:
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", *map(FOLDER.joinpath, IN_PROCESS)]
    process = subprocess.run(command, env=made_gpus(), capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    counts = re.search(r"(\d+) passed.*", process.stdout)
    assert counts is not None
    record_property("test device", counts[0])
