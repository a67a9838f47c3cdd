"""Which GPUs a worker accepts as its own, and that threads are given none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.messages import Lane
from esper_ab.control.preflight import check_launcher
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.launchers.local import LocalLauncher
from workers.process.entry import WrongDevice, check_gpus

CPU = Lane(name="cpu:0", devices=("cpu:0",), uuids=("",))
GPU = Lane(name="cuda:1", devices=("cuda:1",), uuids=("GPU-b",))
BOTH = Lane(name="cuda:1+cpu:0", devices=("cuda:1", "cpu:0"), uuids=("GPU-b", ""))


@pytest.mark.parametrize("lane", [GPU, BOTH], ids=lambda lane: lane.name)
def test_threads_get_no_gpu_and_processes_do(lane: Lane) -> None:
    """Threads would all compute on the first GPU, in arithmetic that nobody pinned; records would say otherwise."""
    with pytest.raises(UsageError, match=f"launcher inline on {lane.name.replace('+', '.')}: .*launcher local"):
        check_launcher(InlineLauncher(), (CPU, lane))
    check_launcher(LocalLauncher(), (CPU, lane))
    check_launcher(InlineLauncher(), (CPU,))


@pytest.mark.parametrize("lane", [GPU, BOTH], ids=lambda lane: lane.name)
def test_a_worker_accepts_the_gpus_of_its_lane_and_no_others(lane: Lane) -> None:
    check_gpus(lane, ["GPU-b"])
    for others in ([], ["GPU-a"], ["GPU-b", "GPU-a"]):
        with pytest.raises(WrongDevice, match="is GPU-b, but torch sees"):
            check_gpus(lane, others)


def test_a_worker_that_has_done_its_work_ends_with_what_was_registered_and_without_taking_itself_apart() -> None:
    code = (
        "import atexit\nfrom workers.process import setup\nclass Torn:\n    def __del__(self): print('torn')\n"
        "torn = Torn()\natexit.register(print, 'registered')\nprint('written')\nsetup.end()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["written", "registered"]
