"""The state of a worker process after its entry point has set it up."""

import json

import pytest
from support.commands.progress_lines import without_progress
from support.processes.children import python

from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.worker_order import Lane
from workers.process import entry

PINNED = """
import json, os, pathlib, signal, sys
from esper_ab.contracts.worker_order import Lane
from esper_ab.contracts.settings import Arithmetic
from workers.process import entry, setup as process
assert "torch" not in sys.modules and "numpy" not in sys.modules
lane = Lane(name="x", devices=("x",), uuids=tuple(json.loads(sys.argv[1])))
arithmetic = Arithmetic(threads=1)
process.ignore_signals()
process.set_environment(lane, arithmetic)
assert "torch" not in sys.modules
uuids = entry._pin_torch(lane, arithmetic)
import torch
from support.worlds.tensor_world import make_session
from workers.storage import state_bytes
session = make_session(steps=2)
session.warm_up(quiet := lambda _: None)
session.train(0, quiet, quiet)
session.resume(state_bytes.from_bytes(state_bytes.to_bytes(session.state())))
session.evaluate(pathlib.Path(sys.argv[2]), quiet)
compiler = {"torch._dynamo", "torch._inductor", "sympy"}
print(json.dumps({
    "uuids": uuids, "compiler": sorted(compiler & set(sys.modules)), "threads": torch.get_num_threads(),
    "deterministic": torch.are_deterministic_algorithms_enabled(), "benchmark": torch.backends.cudnn.benchmark,
    "tf32": torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32,
    "ignores_ctrl_c": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    "gpus": torch.cuda.device_count(),
    "environment": {key: os.environ.get(key) for key in (
        "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS", "MKL_NUM_THREADS")},
}))
"""


def set_up(folder, uuid):
    return python("-c", PINNED, json.dumps([uuid]), folder)


def test_a_cpu_worker_uses_one_thread_without_gpu_or_compiler(tmp_path):
    """Importing torch's compiler takes a second; a run, from warm-up to evaluation, must not do so."""
    result = set_up(tmp_path, "")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "uuids": [""],
        "compiler": [],
        "threads": 1,
        "deterministic": True,
        "benchmark": False,
        "tf32": False,
        "ignores_ctrl_c": True,
        "gpus": 0,
        "environment": {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": "",
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        },
    }


def test_a_worker_refuses_a_device_that_was_not_planned(tmp_path):
    result = set_up(tmp_path, "GPU-00000000-0000-0000-0000-000000000000")
    assert result.returncode == 1
    last_line = without_progress(result.stderr)[-1]
    assert last_line.startswith("workers.process.entry.WrongDevice: lane x is GPU-00000000")


def test_a_worker_in_a_thread_refuses_a_gpu():
    lane = Lane(name="cuda:1", devices=("cuda:1",), uuids=("GPU-b",))
    with pytest.raises(entry.WrongDevice, match="lane cuda:1 has GPUs, and a thread has none of its own"):
        entry._set_threads(lane, Arithmetic())
