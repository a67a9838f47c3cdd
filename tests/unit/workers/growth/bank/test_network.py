"""A training step never waits for its device, and never mixes two: shown without a GPU, on tensors that hold no data.

On torch's meta device whatever asks for a value, or joins a tensor of another device, fails. What may wait is
`Tensor.cpu`, and it is counted. What this cannot see is a kernel that waits by itself: those which do so where results
must be deterministic are not called (tests/unit/workers/layers/test_device.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.kernels import per_minibatch
from benchmarks.worlds import Case
from support.crowded import BATCH, ENVS, crowded
from support.no_device import META
from support.tensor_world import orders

from workers.growth.bank.loss_scale import LossScale
from workers.growth.bank.network import side_by_side
from workers.tasks.digits import TASK

ROOT = Path(__file__).resolve().parents[5]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something was fetched from the device; what comes is zeros."""
    counted: Counter[str] = Counter()

    def cpu(self: torch.Tensor) -> torch.Tensor:
        counted["cpu"] += 1
        return torch.zeros(self.shape, dtype=self.dtype)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    return counted


@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
def test_an_epoch_waits_once_however_many_steps_it_has(waits: Counter[str], amp: str) -> None:
    for steps in (1, 5):
        bank, table, split = crowded(TASK, META, steps * BATCH, amp=amp)
        scale = LossScale() if amp == "fp16" else None
        waits.clear()
        loss, _ = bank.train_epoch(table, np.arange(ENVS), split, orders(ENVS, steps * BATCH), scale)
        assert loss.shape == (ENVS,)
        assert waits == {"cpu": 1}


def test_a_validation_with_counterfactuals_waits_twice(waits: Counter[str]) -> None:
    """Once for what was right, once for the losses, whatever the number of samples."""
    for samples in (BATCH, 300):
        bank, table, split = crowded(TASK, META, samples)
        waits.clear()
        found = bank.measure(table, np.arange(ENVS), split, ablate=True)
        assert found.loss.shape == (ENVS,)
        assert waits == {"cpu": 2}


@pytest.mark.parametrize(
    "asks", [lambda t: t.sum().item(), lambda t: t.nonzero(), lambda t: t[t > 0], lambda t: t + torch.zeros(3)]
)
def test_the_method_finds_what_it_looks_for(asks) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        asks(torch.empty(3, device=META))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("hosts", [1, 4])
def test_every_host_is_shown_its_own_images(hosts: int, channels: int) -> None:
    images = torch.randn(9, 5, 4, channels, generator=torch.Generator().manual_seed(0))
    batch = torch.stack([torch.randperm(9, generator=torch.Generator().manual_seed(host)) for host in range(hosts)])
    x = side_by_side(images, batch)
    assert all(torch.equal(x[:, :, :, host], images[batch[host]]) for host in range(hosts))


@pytest.mark.parametrize(
    ("task", "live_seeds", "most"), [("digits", 0, 65), ("cifar10", 0, 90), ("digits", 3, 800), ("cifar10", 3, 840)]
)
def test_a_minibatch_starts_so_many_kernels_at_most(task: str, live_seeds: int, most: int) -> None:
    """Of bare hosts, and with every blueprint in every slot; however many hosts there are."""
    found = [
        per_minibatch(Case(task=task, n_envs=n, live_seeds=live_seeds)).total() for n in (16, 64 if live_seeds else 128)
    ]
    assert max(found) <= most
    assert found[1] <= found[0] + 2


def test_kernels_are_counted_in_a_process_of_the_benchmark_alone() -> None:
    count = "from benchmarks.worlds import Case; from benchmarks.kernels import per_minibatch; "
    count += "print(per_minibatch(Case(task='digits', n_envs=1, live_seeds=0)).total())"
    where = os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("scripts", "tests"))}
    found = subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, text=True, env=where)
    assert int(found.stdout) > 0
