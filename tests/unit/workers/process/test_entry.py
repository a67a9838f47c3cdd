"""The GPUs that a worker accepts, and its reports of failures."""

from pathlib import Path

import pytest
import torch
from support.plans import fake_plans
from support.plans.worker_orders import order
from support.processes.children import python

from esper_ab.contracts.errors import CodeChanged, OutOfMemory, UserCodeFailed
from esper_ab.contracts.failure_cause import UNKNOWN
from esper_ab.contracts.messages import Assign
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.worker_order import Lane
from esper_ab.control.hub import Hub
from workers.devices import pinned
from workers.kinds.trainer.running import ScriptFailed
from workers.process.entry import WrongDevice, check_gpus, failure
from workers.process.link import Link
from workers.process.loop import serve

CPU = Lane(name="cpu:0", devices=("cpu:0",), uuids=("",))
GPU = Lane(name="cuda:1", devices=("cuda:1",), uuids=("GPU-b",))
GPU_AND_CPU = Lane(name="cuda:1+cpu:0", devices=("cuda:1", "cpu:0"), uuids=("GPU-b", ""))


@pytest.mark.parametrize("lane", [GPU, GPU_AND_CPU], ids=lambda lane: lane.name)
def test_a_worker_accepts_only_the_gpus_of_its_lane(lane: Lane) -> None:
    check_gpus(lane, ["GPU-b"])
    for visible_gpus in ([], ["GPU-a"], ["GPU-b", "GPU-a"]):
        with pytest.raises(WrongDevice, match="is GPU-b, but torch sees"):
            check_gpus(lane, visible_gpus)


@pytest.mark.parametrize(
    ("error", "summary", "retry", "stops"),
    [
        (UserCodeFailed("reward mode 'm.py:r' failed\nand more"), "reward mode 'm.py:r' failed", False, False),
        (ScriptFailed("train.py ended with exit status 1"), "train.py ended with exit status 1", True, False),
        (CodeChanged("train.py: changed"), "train.py: changed", False, True),
        (KeyError("x"), "KeyError: 'x'", True, False),
    ],
)
def test_a_failure_of_user_code_is_reported_without_a_traceback(
    error: Exception, summary: str, retry: bool, stops: bool
) -> None:
    message = failure(error)
    assert (message.summary, message.again, message.stops) == (summary, retry, stops)
    assert ("KeyError" in message.traceback) == bool(message.traceback) == isinstance(error, KeyError)


def test_the_report_of_a_failed_program_has_its_words_with_their_numbers() -> None:
    cause = failure(ValueError("expected 3 features")).cause
    assert (cause.masked, cause.text) == ("ValueError: expected # features", "ValueError: expected 3 features")
    assert failure(ScriptFailed("it idled")).cause == UNKNOWN


def test_a_finished_worker_runs_its_exit_handlers() -> None:
    code = (
        "import atexit\nfrom workers.process import setup\nclass Torn:\n    def __del__(self): print('torn')\n"
        "torn = Torn()\natexit.register(print, 'registered')\nprint('written')\nsetup.end()\n"
    )
    process = python("-c", code)
    assert process.stdout.split() == ["written", "registered"]


def test_a_run_out_of_gpu_memory_is_reported_with_a_remedy() -> None:
    def out_of_memory(_folder: Path, _log: str) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    hub = Hub()
    worker_order = order(endpoint=hub.endpoint)
    hub.admit(worker_order.identity)
    link = Link(hub.endpoint, worker_order.identity)
    while not hub.send(worker_order.identity, Assign(spec=fake_plans.plan().blocks[0].runs[0], milestone=0)):
        hub.poll(0.02)
    with pytest.raises(OutOfMemory) as caught:
        serve(link, worker_order, out_of_memory)
    link.close(is_finished=True)
    hub.close()
    message = failure(caught.value)
    assert (message.again, failure(ValueError("no")).again) == (False, True)
    assert message.summary.startswith("OutOfMemory: cpu:0: the run took up to ")
    assert message.summary.endswith("fewer --n-envs (in Python n_envs) or a smaller growth.batch_size need less")
    assert "Tried to allocate 2.00 GiB" in message.traceback


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "expandable_segments:True"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, None),
        ({"PYTORCH_ALLOC_CONF": "backend:native"}, None),
    ],
)
def test_the_gpu_allocator_uses_expandable_segments_by_default(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str | None
) -> None:
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert pinned.variables(("GPU-a",), Arithmetic()).get("PYTORCH_CUDA_ALLOC_CONF") == expected
