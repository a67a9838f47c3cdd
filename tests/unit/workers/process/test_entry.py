"""Which GPUs a worker accepts as its own, and that threads are given none."""

from __future__ import annotations

import pytest

from esper_ab.contracts.errors import UsageError, UserCodeFailed
from esper_ab.contracts.messages import Failed, Lane
from esper_ab.control.preflight import check_launcher
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.launchers.local import LocalLauncher
from workers.process.entry import WrongDevice, check_gpus, failure
from workers.trainer.script import ScriptFailed

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


def test_what_a_users_code_did_is_told_without_our_traceback_and_whether_another_attempt_may_help() -> None:
    assert failure(UserCodeFailed("reward mode 'm.py:r' failed\nand more")) == Failed(
        summary="reward mode 'm.py:r' failed", traceback="", again=False, frozen=True
    )
    assert failure(ScriptFailed("train.py ended with exit status 1")).again
    ours = failure(KeyError("x"))
    assert (ours.summary, ours.again, "KeyError" in ours.traceback) == ("KeyError: 'x'", True, True)
