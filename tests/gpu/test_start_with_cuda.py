"""No worker is forked from a start process in which a user's package has initialised CUDA."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
STARTED = """
import json, sys
from esper_ab.launchers.local import LocalLauncher
from support.plans.worker_orders import order
launcher = LocalLauncher("support.workers.cuda_at_import:main")
worker = launcher.start(order(worker="one", experiment_dir=sys.argv[1]))
assert worker.join(120.0)
print(json.dumps([worker.exitcode, launcher.spawned_because]))
"""


def test_workers_are_spawned_after_cuda_was_initialised(
    tmp_path: Path, made_gpus: Callable[..., dict[str, str]]
) -> None:
    """The test device refuses calls after a fork, as CUDA does."""
    command = [sys.executable, "-c", STARTED, str(tmp_path)]
    process = subprocess.run(command, env=made_gpus(), capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == [0, "importing its modules has initialised CUDA"], process.stderr
    assert (tmp_path / "one").read_text() == "2.0"
