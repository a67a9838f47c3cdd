"""Which GPUs a worker accepts as its own, and that threads are given none."""

from pathlib import Path

import pytest
import torch
from support.plans import fake_plans
from support.plans.worker_orders import order
from support.processes.children import python

from esper_ab.contracts.errors import CodeChanged, OutOfMemory, UserCodeFailed
from esper_ab.contracts.messages import Assign
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.worker_order import Lane
from esper_ab.control.hub import Hub
from workers.devices import pinned
from workers.kinds.trainer.script import ScriptFailed
from workers.process.entry import WrongDevice, check_gpus, failure
from workers.process.link import Link
from workers.process.loop import serve

CPU = Lane(name="cpu:0", devices=("cpu:0",), uuids=("",))
GPU = Lane(name="cuda:1", devices=("cuda:1",), uuids=("GPU-b",))
BOTH = Lane(name="cuda:1+cpu:0", devices=("cuda:1", "cpu:0"), uuids=("GPU-b", ""))


@pytest.mark.parametrize("lane", [GPU, BOTH], ids=lambda lane: lane.name)
def test_a_worker_accepts_the_gpus_of_its_lane_and_no_others(lane: Lane) -> None:
    check_gpus(lane, ["GPU-b"])
    for others in ([], ["GPU-a"], ["GPU-b", "GPU-a"]):
        with pytest.raises(WrongDevice, match="is GPU-b, but torch sees"):
            check_gpus(lane, others)


@pytest.mark.parametrize(
    ("error", "summary", "again", "stops"),
    [
        (UserCodeFailed("reward mode 'm.py:r' failed\nand more"), "reward mode 'm.py:r' failed", False, False),
        (ScriptFailed("train.py ended with exit status 1"), "train.py ended with exit status 1", True, False),
        (CodeChanged("train.py: changed"), "train.py: changed", False, True),
        (KeyError("x"), "KeyError: 'x'", True, False),
    ],
)
def test_what_a_users_code_did_is_told_without_our_traceback_and_whether_another_attempt_may_help(
    error: Exception, summary: str, again: bool, stops: bool
) -> None:
    found = failure(error)
    assert (found.summary, found.again, found.stops) == (summary, again, stops)
    assert ("KeyError" in found.traceback) == bool(found.traceback) == isinstance(error, KeyError)


def test_a_worker_that_has_done_its_work_ends_with_what_was_registered_and_without_taking_itself_apart() -> None:
    code = (
        "import atexit\nfrom workers.process import setup\nclass Torn:\n    def __del__(self): print('torn')\n"
        "torn = Torn()\natexit.register(print, 'registered')\nprint('written')\nsetup.end()\n"
    )
    done = python("-c", code)
    assert done.stdout.split() == ["written", "registered"]


def test_a_run_that_does_not_fit_its_gpu_is_not_started_again_and_says_what_needs_less() -> None:
    def out_of_memory(_folder: Path, _log: str) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    hub = Hub()
    told = order(endpoint=hub.endpoint)
    hub.admit(told.identity)
    link = Link(hub.endpoint, told.identity)
    while not hub.send(told.identity, Assign(spec=fake_plans.plan().blocks[0].runs[0], milestone=0)):
        hub.poll(0.02)
    with pytest.raises(OutOfMemory) as caught:
        serve(link, told, out_of_memory)
    link.close(finished=True)
    hub.close()
    said = failure(caught.value)
    assert (said.again, failure(ValueError("no")).again) == (False, True)
    assert said.summary.startswith("OutOfMemory: cpu:0: the run took up to ")
    assert said.summary.endswith("fewer --n-envs or a smaller growth.batch_size need less")
    assert "Tried to allocate 2.00 GiB" in said.traceback


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({}, "expandable_segments:True"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, None),
        ({"PYTORCH_ALLOC_CONF": "backend:native"}, None),
    ],
)
def test_the_allocator_of_a_gpu_is_told_to_expand_unless_it_was_told_something(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], found: str | None
) -> None:
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert pinned.variables(("GPU-a",), Arithmetic()).get("PYTORCH_CUDA_ALLOC_CONF") == found
